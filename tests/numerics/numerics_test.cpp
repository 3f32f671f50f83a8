// Random (problem, config) pairs, compiled and run against the f64 reference on guarded buffers, as
// deepgen-measure does it: dense and padded operands, alpha and beta, C apart and in place, every way to
// share out the grid.
#include "base/files/files.h"
#include "base/files/kept_file.h"
#include "tests/numerics/numerics.h"
#include "tests/unit/environment.h"

#include <filesystem>
#include <iterator>

namespace deepgen::numerics_test {
namespace {

using namespace numerics;

const std::vector<std::vector<EpilogueOp>>& epilogues() {
  using enum EpilogueOp;
  static const std::vector<std::vector<EpilogueOp>> all = {
      {},           {bias},       {relu},       {gelu},       {silu},
      {bias, relu}, {bias, gelu}, {bias, silu}, {relu, bias}, {silu, bias, relu}};
  return all;
}

class RandomPairs : public testing::TestWithParam<int> {};

TEST_P(RandomPairs, MatchTheReference) {
  check_random_pairs(1000, GetParam(), [](Rng& rng, size_t index) {
    Gemm p = random_problem(rng, index);
    p.epilogue = epilogues()[index / 4 % epilogues().size()];
    return p;
  });
}
INSTANTIATE_TEST_SUITE_P(Share, RandomPairs, testing::Range(0, 8));

/// On a problem large enough to have several blocks in every direction.
class EveryValue : public testing::TestWithParam<Layout> {};

TEST_P(EveryValue, MatchesTheReference) {
  Gemm p;
  p.m = 131, p.n = 1061, p.k = 523;
  p.layout = GetParam();
  p.epilogue = {EpilogueOp::bias, EpilogueOp::gelu};
  const ValueCounts legal = check_every_value(p);
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
  const Environment compile_both("DEEPGEN_KEEP_OBJECTS", nullptr);
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

/// An object that is kept is taken for the same module alone, and gives the same kernel.
TEST(Codegen, KeptObjectsAreThoseOfTheirModule) {
  const Gemm p =
      Gemm::parse("gemm m=5 n=7 k=9 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4");
  const Choice choice = Space(p, "cpu", device_of_level(1)).default_choice();
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "kept_objects";
  std::filesystem::remove_all(folder);
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  const auto compiled = [&](const Gemm& problem) {
    return compile_candidate(problem, "cpu", choice, false, false);
  };
  const std::string path = folder.string();
  const auto kept = [&](const Gemm& problem) {
    const Environment keep("DEEPGEN_KEEP_OBJECTS", path.c_str());
    return compiled(problem);
  };
  const Environment nowhere("DEEPGEN_KEEP_OBJECTS", nullptr);
  const KernelFile first = kept(p);
  ASSERT_EQ(first.status, "ok") << first.detail;
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(first.serialize(), compiled(p).serialize());
  EXPECT_EQ(first.serialize(), kept(p).serialize());
  EXPECT_EQ(files(), 1);
  Gemm other = p;
  other.epilogue = {EpilogueOp::relu};
  EXPECT_NE(kept(other).kernels[0].sha256, first.kernels[0].sha256);
  EXPECT_EQ(files(), 2);
  for (const auto& file : std::filesystem::directory_iterator(folder))
    write_atomically(file.path().string(), "damaged");
  EXPECT_EQ(first.serialize(), kept(p).serialize()) << "what is damaged is made again";
  EXPECT_EQ(first.serialize(), kept(p).serialize());
  for (const auto& file : std::filesystem::directory_iterator(folder))
    keep_file(file.path().string(), "no object");
  EXPECT_EQ(kept(p).status, "failed") << "what is kept is read";
  EXPECT_EQ(compiled(p).status, "ok");
  std::filesystem::remove_all(folder);
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
} // namespace deepgen::numerics_test
