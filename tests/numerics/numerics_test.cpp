// Random (problem, config) pairs, compiled and run against the f64 reference on guarded buffers, as
// deepgen-measure does it: dense and padded operands, alpha and beta, C apart and in place, every way to
// share out the grid.
#include "tests/numerics/numerics.h"

#include <map>

namespace deepgen {
namespace {

using namespace numerics;

const std::vector<std::vector<EpilogueOp>>& epilogues() {
  using enum EpilogueOp;
  static const std::vector<std::vector<EpilogueOp>> all = {
      {},           {bias},       {relu},       {gelu},       {silu},
      {bias, relu}, {bias, gelu}, {bias, silu}, {relu, bias}, {silu, bias, relu}};
  return all;
}

/// One of eight shares of the random pairs, so that ctest runs them in parallel and names what failed.
class RandomPairs : public testing::TestWithParam<int> {};

TEST_P(RandomPairs, MatchTheReference) {
  constexpr int kPairs = 50;
  Rng rng(uint32_t(1000 + GetParam()));
  int pairs = 0;
  for (int i = 0; i < kPairs; ++i) {
    const auto index = size_t(GetParam() * kPairs + i);
    Gemm p = random_problem(rng, index);
    p.epilogue = epilogues()[index / 4 % epilogues().size()];
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
  Gemm p;
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
    Gemm p = random_problem(rng, i);
    p.epilogue = random_epilogue(rng);
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
  Gemm p = Gemm::parse(
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
  Gemm p;
  KernelFile file = compile_candidate(p, "cpu", {"no_such_template", Config()}, false, false);
  EXPECT_EQ(file.status, "failed");
  EXPECT_NE(file.detail.find("cpu_tile"), std::string::npos) << "names what there is: " << file.detail;
  EXPECT_TRUE(file.kernels.empty());
  file = compile_candidate(p, "sm_90a", {"cpu_tile", Config()}, false, false);
  EXPECT_EQ(file.status, "failed");
}

} // namespace
} // namespace deepgen
