// Epilogues of whole problems: every step alone, random sequences of steps, operands that are D itself,
// threads.
#include "measure/values/inputs.h"
#include "measure/values/operands.h"
#include "tests/numerics/numerics.h"

#include <set>
#include <thread>

namespace deepgen::epilogue_test {
namespace {

using namespace numerics;

KernelFile compile_default(const Gemm& p, int64_t level) {
  return compile_candidate(p, "cpu", Space(p, "cpu", device_of_level(level)).default_choice(), true, false);
}

class EveryStep : public testing::TestWithParam<int> {};

TEST_P(EveryStep, MatchesTheReferenceAlone) {
  for (Type type : {Type::f32, Type::f64})
    for (int64_t level : {host_level(), int64_t(1)}) {
      Gemm p;
      p.m = 19, p.n = 45, p.k = 70, p.batch = 2;
      p.a = p.b = p.d = type;
      p.layout = Layout(GetParam() % 4);
      p.epilogue = {EpilogueOp(GetParam())};
      complete(p);
      EXPECT_GT(verify_all(compile_default(p, level), p.key()), 0);
    }
}
INSTANTIATE_TEST_SUITE_P(Alone, EveryStep, testing::Range(0, epilogue_op_count),
                         [](const auto& info) { return to_string(EpilogueOp(info.param)); });

EpilogueOp random_gate(Rng& rng) {
  constexpr EpilogueOp kGates[] = {EpilogueOp::silu, EpilogueOp::gelu, EpilogueOp::gelu_tanh,
                                   EpilogueOp::sigmoid, EpilogueOp::relu};
  return kGates[rng() % std::size(kGates)];
}

/// Two weights in one kernel, with and without steps behind the gate; half of them with several blocks of K.
TEST(Gated, RandomProblemsMatchTheReference) {
  constexpr int kPairs = 60;
  Rng rng(4000);
  int blocks = 0, ragged = 0;
  for (int i = 0; i < kPairs; ++i) {
    Gemm p = random_problem(rng, size_t(i));
    do p.epilogue = random_epilogue(rng);
    while (p.has(EpilogueOp::scale_a) || p.has(EpilogueOp::scale_b));
    if (i % 3) p.epilogue.clear();
    p.gate = random_gate(rng);
    if (i % 2) p.k = between(rng, 130, 400);
    const Space space(p, "cpu", device_of_level(std::min(host_level(), pick(rng, {4, 4, 3, 1}))));
    ASSERT_GT(space.size(), 0u) << p.key();
    const Choice choice = space.choice(rng() % space.size());
    SCOPED_TRACE(p.key() + " | " + choice.text());
    ASSERT_GT(verify_all(compile_candidate(p, "cpu", choice, true, i % 10 == 0), choice.text()), 0);
    blocks += choice.config["kc"] < p.k, ragged += p.n % 4 != 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(blocks, kPairs / 8);
  EXPECT_GT(ragged, kPairs / 4);
}

/// One of four shares. Half of the problems have a matrix operand and enough K for several blocks, whose sums
/// D cannot hold.
class RandomEpilogues : public testing::TestWithParam<int> {};

TEST_P(RandomEpilogues, MatchTheReference) {
  constexpr int kPairs = 60;
  Rng rng(uint32_t(2000 + GetParam()));
  int kept_sums = 0;
  for (int i = 0; i < kPairs; ++i) {
    Gemm p = random_problem(rng, size_t(i));
    do p.epilogue = random_epilogue(rng);
    while (i % 2 && !p.has(EpilogueOp::residual) && !p.has(EpilogueOp::multiply));
    if (i % 2) p.k = between(rng, 130, 400);
    const Space space(p, "cpu", device_of_level(std::min(host_level(), pick(rng, {4, 4, 3, 1}))));
    ASSERT_GT(space.size(), 0u) << p.key();
    const Choice choice = space.choice(rng() % space.size());
    SCOPED_TRACE(p.key() + " | " + choice.text());
    ASSERT_GT(verify_all(compile_candidate(p, "cpu", choice, true, i % 10 == 0), choice.text()), 0);
    kept_sums += i % 2 && choice.config["kc"] < p.k;
    if (HasFailure()) return;
  }
  EXPECT_GT(kept_sums, kPairs / 8) << "several blocks of K with a matrix operand";
}
INSTANTIATE_TEST_SUITE_P(Share, RandomEpilogues, testing::Range(0, 4));

/// Each value of each parameter where sums are kept beside D.
TEST(Epilogue, EveryValueWithMatrixOperandsOrAGate) {
  for (const char* key : {"gemm m=131 n=1061 k=523 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt "
                          "epilogue=silu+multiply+residual align=4",
                          "gemm m=131 n=1061 k=523 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=tn "
                          "epilogue=scale_row+residual align=4",
                          "gemm m=131 n=530 k=523 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt "
                          "gate=silu epilogue=none align=4"}) {
    const Gemm p = Gemm::parse(key);
    const Space space(p, "cpu", device_of_level(host_level()));
    std::set<std::pair<std::string, int64_t>> covered;
    for (size_t i = 0, rank = 0; i < space.size(); ++i, rank = (rank + 7919) % space.size()) {
      const Choice choice = space.choice(rank);
      bool is_new = false;
      for (const auto& value : choice.config.values) is_new |= covered.insert(value).second;
      if (!is_new) continue;
      SCOPED_TRACE(choice.text());
      ASSERT_GT(verify_all(compile_candidate(p, "cpu", choice, false, false), choice.text()), 0);
      if (HasFailure()) return;
    }
    EXPECT_TRUE(covered.count({"loops", 2}));
    EXPECT_TRUE(covered.count({"nc", 512}));
  }
}

/// D = residual + silu(A B), in place, several blocks of K, shared out among threads that run at once: the
/// same bits as from one call.
TEST(Epilogue, ThreadsGiveTheSameBits) {
  const Gemm p = Gemm::parse(
      "gemm m=96 n=200 k=300 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=silu+residual align=4");
  const Space space(p, "cpu", device_of_level(host_level()));
  size_t rank = 0;
  while (rank < space.size() && space.choice(rank).config["kc"] >= p.k) ++rank;
  ASSERT_LT(rank, space.size());
  const KernelFile file = compile_candidate(p, "cpu", space.choice(rank), false, false);
  ASSERT_EQ(file.status, "ok") << file.detail;
  const Kernel& kernel = file.kernels[0];
  const LoadedKernel loaded(kernel);
  const Inputs inputs(p, 3);
  const auto run = [&](int threads) {
    const auto* residual = reinterpret_cast<const float*>(inputs.operand(EpilogueOp::residual).data());
    std::vector<float> d(residual, residual + p.m * p.n);
    std::vector<PageBuffer> scratch;
    for (int t = 0; t < threads; ++t) scratch.emplace_back(size_t(kernel.workspace) + 1);
    const auto part = [&](int t) {
      CallBuffers x;
      x.a = inputs.a.data(), x.b = inputs.b.data(), x.d = d.data();
      x.lda = p.k, x.ldb = x.ldd = p.n;
      x.step(EpilogueOp::residual) = {d.data(), p.n, 0};
      x.workspace = scratch[size_t(t)].data();
      TileRanges range = loaded.full_range();
      const int64_t tiles = range.n1;
      range.n0 = tiles * t / threads, range.n1 = tiles * (t + 1) / threads;
      if (range.n0 < range.n1) loaded.call(values_of(x, p), range);
    };
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t) pool.emplace_back(part, t);
    for (std::thread& thread : pool) thread.join();
    return d;
  };
  const std::vector<float> expected = run(1);
  for (int threads : {2, 3, 4, 8}) EXPECT_EQ(run(threads), expected) << threads << " threads";
}

/// Sums beside D are bounded, and the reason has numbers.
TEST(Epilogue, LargeBlocksOfSumsAreIllegal) {
  const Gemm p = Gemm::parse(
      "gemm m=8192 n=8192 k=8192 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=residual align=4");
  Device device = device_of_level(4);
  device.l3 = 32 << 20;
  Choice choice = Space(p, "cpu", device).default_choice();
  EXPECT_EQ(why_illegal(p, "cpu", device, choice), "");
  choice.config.set("mc", 8192), choice.config.set("nc", 8192), choice.config.set("kc", 256);
  choice.config.set("pack", 2), choice.config.set("prefetch", 0);
  EXPECT_NE(why_illegal(p, "cpu", device, choice).find("256.00 MiB"), std::string::npos)
      << why_illegal(p, "cpu", device, choice);
}

} // namespace
} // namespace deepgen::epilogue_test
