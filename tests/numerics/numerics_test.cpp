// Random (problem, config) pairs, compiled and run against the f64 reference on guarded buffers, as
// deepgen-measure does it: dense and padded operands, alpha and beta, C apart and in place, every way to
// share out the grid.
#include "generator/compile.h"
#include "generator/space.h"
#include "measure/verify.h"
#include "runtime/cpu.h"
#include "templates/cpu_tile.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace deepgen {
namespace {

using Rng = std::mt19937;

int64_t pick(Rng& rng, const std::vector<int64_t>& values) { return values[rng() % values.size()]; }
int64_t between(Rng& rng, int64_t low, int64_t high) {
  return low + int64_t(rng() % uint64_t(high - low + 1));
}

const std::vector<std::vector<EpilogueOp>>& epilogues() {
  using enum EpilogueOp;
  static const std::vector<std::vector<EpilogueOp>> all = {
      {},           {bias},       {relu},       {gelu},       {silu},
      {bias, relu}, {bias, gelu}, {bias, silu}, {relu, bias}, {silu, bias, relu}};
  return all;
}

Device device_of_level(int64_t level) {
  Device device;
  device.isa = level;
  return device;
}

int64_t host_level() { return int64_t(cpu::hardware_level()); }

/// Sizes that break tile code: 1, primes, a tile or a vector more or less one.
int64_t awkward_size(Rng& rng) {
  switch (rng() % 4) {
  case 0:
    return 1;
  case 1:
    return pick(rng, {2, 3, 5, 7, 11, 13, 17, 29, 37, 61, 97, 113, 131});
  case 2:
    return pick(rng, {4, 8, 14, 16, 32, 48, 64, 96}) + between(rng, -1, 1);
  default:
    return between(rng, 1, 160);
  }
}

Problem random_problem(Rng& rng, size_t index) {
  Problem p;
  p.m = awkward_size(rng), p.n = awkward_size(rng),
  p.k = rng() % 8 == 0 ? between(rng, 500, 700) : awkward_size(rng);
  p.batch = rng() % 4 == 0 ? between(rng, 2, 3) : 1;
  p.layout = Layout(index % 4);
  p.epilogue = epilogues()[index / 4 % epilogues().size()];
  p.a = p.b = p.d = p.accumulate = rng() % 3 == 0 ? Type::f64 : Type::f32;
  p.align = size_of(p.d);
  return p;
}

/// Verifies every kernel of the file that this CPU runs; returns how many.
int verify_all(const KernelFile& file, const std::string& context) {
  EXPECT_EQ(file.status, "ok") << file.detail << "\n" << context;
  int verified = 0;
  for (const Kernel& kernel : file.kernels) {
    if (kernel.isa > host_level()) continue;
    CaseSet cases(kernel.problem, 7);
    std::string step;
    Verdict verdict =
        cases.verify(LoadedKernel(kernel), kernel.workspace, [&](const std::string& s) { step = s; });
    EXPECT_EQ(verdict.status, "ok") << kernel.role << ": " << verdict.detail << "\n"
                                    << step << "\n"
                                    << kernel.problem.key() << "\n"
                                    << kernel.choice.text();
    ++verified;
  }
  return verified;
}

/// One of eight shares of the random pairs, so that ctest runs them in parallel and names what failed.
class RandomPairs : public testing::TestWithParam<int> {};

TEST_P(RandomPairs, MatchTheReference) {
  constexpr int kPairs = 50;
  Rng rng(uint32_t(1000 + GetParam()));
  int pairs = 0;
  for (int i = 0; i < kPairs; ++i) {
    Problem p = random_problem(rng, size_t(GetParam() * kPairs + i));
    const int64_t level = std::min(host_level(), pick(rng, {4, 4, 3, 1}));
    Space space(p, "cpu", device_of_level(level));
    ASSERT_GT(space.size(), 0u) << "no legal config: " << p.key() << " at level " << level;
    Choice choice = i % 5 == 0 ? space.default_choice() : space.choice(rng() % space.size());
    SCOPED_TRACE(p.key() + " | " + choice.text());
    pairs += verify_all(compile_candidate(p, "cpu", choice, true, i % 10 == 0), choice.text()) > 0;
    if (HasFailure()) return;
  }
  EXPECT_EQ(pairs, kPairs);
}
INSTANTIATE_TEST_SUITE_P(Share, RandomPairs, testing::Range(0, 8));

/// Each value of each parameter, at least once, on a problem large enough to have several blocks in every
/// direction.
class EveryValue : public testing::TestWithParam<Layout> {};

TEST_P(EveryValue, MatchesTheReference) {
  Problem p;
  p.m = 131, p.n = 1061, p.k = 523;
  p.layout = GetParam();
  p.epilogue = {EpilogueOp::bias, EpilogueOp::gelu};
  const Device device = device_of_level(host_level());
  Space space(p, "cpu", device);
  std::map<std::pair<std::string, int64_t>, int> covered;
  Rng rng(5);
  const size_t stride = 7919; // a prime: visits the whole space, ranks far apart
  for (size_t i = 0, rank = rng() % space.size(); i < space.size();
       ++i, rank = (rank + stride) % space.size()) {
    Choice choice = space.choice(rank);
    bool is_new = false;
    for (const auto& value : choice.config.values) is_new |= covered[value]++ == 0;
    if (!is_new) continue;
    SCOPED_TRACE(choice.text());
    ASSERT_GT(verify_all(compile_candidate(p, "cpu", choice, false, false), choice.text()), 0);
    if (HasFailure()) return;
  }
  // A value that no legal config has (nc below N with B in place, say) cannot be covered; all others must be.
  std::map<std::pair<std::string, int64_t>, int> legal;
  for (size_t rank = 0; rank < space.size(); ++rank)
    for (const auto& value : space.choice(rank).config.values) legal[value]++;
  for (const auto& [value, count] : legal)
    EXPECT_TRUE(covered.count(value))
        << value.first << "=" << value.second << ", in " << count << " legal configs";
  EXPECT_EQ(legal.count({"form", 1}), GetParam() == Layout::nt ? 1u : 0u);
}
INSTANTIATE_TEST_SUITE_P(Layouts, EveryValue,
                         testing::Values(Layout::nn, Layout::nt, Layout::tn, Layout::tt));

/// Whatever the problem and the level, some config is legal, and the default is among the space's own.
TEST(Space, IsNeverEmpty) {
  Rng rng(9);
  for (size_t i = 0; i < 400; ++i) {
    Problem p = random_problem(rng, i);
    if (i % 3 == 0) p.m = pick(rng, {1, 2, 3, 1000, 4097});
    if (i % 3 == 1) p.n = pick(rng, {1, 2, 3, 1000, 4097});
    if (i % 5 == 0) p.k = pick(rng, {1, 2, 3, 1000, 4097});
    for (int64_t level : {1, 2, 3, 4}) {
      Space space(p, "cpu", device_of_level(level));
      ASSERT_GT(space.size(), 0u) << p.key() << " at level " << level;
      EXPECT_EQ(why_illegal(p, "cpu", device_of_level(level), space.default_choice()), "") << p.key();
    }
  }
}

TEST(Codegen, IsDeterministic) {
  Problem p = Problem::parse(
      "gemm m=33 n=77 k=129 batch=2 a=f32 b=f32 d=f32 acc=f32 layout=tn epilogue=bias+gelu align=4");
  Space space(p, "cpu", device_of_level(4));
  for (size_t rank : {size_t(0), space.size() / 2}) {
    KernelFile first = compile_candidate(p, "cpu", space.choice(rank), true, true);
    KernelFile second = compile_candidate(p, "cpu", space.choice(rank), true, true);
    ASSERT_EQ(first.status, "ok") << first.detail;
    EXPECT_EQ(first.serialize(), second.serialize());
  }
}

TEST(Codegen, BadCandidateIsAFailedFile) {
  Problem p;
  KernelFile file = compile_candidate(p, "cpu", {"no_such_template", Config()}, false, false);
  EXPECT_EQ(file.status, "failed");
  EXPECT_NE(file.detail.find("cpu_tile"), std::string::npos) << "names what there is: " << file.detail;
  EXPECT_TRUE(file.kernels.empty());
  file = compile_candidate(p, "sm_90a", {"cpu_tile", Config()}, false, false);
  EXPECT_EQ(file.status, "failed");
}

/// NaN and infinity pass through as IEEE 754 and PyTorch have it: relu(NaN) = NaN, gelu(+inf) = silu(+inf) =
/// +inf; large negative values go to zero.
TEST(Epilogue, SpecialValues) {
  for (EpilogueOp op : {EpilogueOp::relu, EpilogueOp::gelu, EpilogueOp::silu}) {
    Problem p;
    p.m = 1, p.n = 8, p.k = 1;
    p.epilogue = {op};
    Space space(p, "cpu", device_of_level(host_level()));
    KernelFile file = compile_candidate(p, "cpu", space.default_choice(), false, false);
    ASSERT_EQ(file.status, "ok") << file.detail;
    const float inf = INFINITY;
    float a[1] = {1}, b[8] = {NAN, inf, -200.0f, 0.0f, 30.0f, -1e35f, -3e38f, -inf}, d[8] = {};
    CallBuffers buffers;
    buffers.a = a, buffers.b = b, buffers.d = d;
    buffers.lda = 1, buffers.ldb = 8, buffers.ldd = 8;
    alignas(64) char workspace[1 << 12];
    ASSERT_LE(file.kernels[0].workspace, int64_t(sizeof workspace));
    buffers.workspace = workspace;
    LoadedKernel(file.kernels[0]).call(buffers);
    EXPECT_TRUE(std::isnan(d[0])) << to_string(op);
    EXPECT_EQ(d[1], inf) << to_string(op);
    EXPECT_NEAR(d[2], 0.0, 1e-30) << to_string(op);
    EXPECT_EQ(d[3], 0.0f) << to_string(op);
    EXPECT_EQ(d[4], 30.0f) << to_string(op);
    EXPECT_NEAR(d[5], 0.0, 1e-30) << to_string(op);
    EXPECT_NEAR(d[6], 0.0, 1e-30) << to_string(op);
    if (op == EpilogueOp::relu)
      EXPECT_EQ(d[7], 0.0f);
    else
      EXPECT_TRUE(std::isnan(d[7])) << to_string(op); // -inf times 0
  }
}

} // namespace
} // namespace deepgen
