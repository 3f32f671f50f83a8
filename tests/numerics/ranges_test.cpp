// Kernels of problems with ranges: random (problem, config, sizes of a call), and planted faults.
#include "base/kernel/kernel_call.h"
#include "base/problem/points.h"
#include "measure/cpu/gemm_cases.h"
#include "measure/values/verified_sizes.h"
#include "tests/numerics/numerics.h"

namespace deepgen::ranges_test {
namespace {

using namespace numerics;

/// One to four sizes become ranges that end there.
Gemm with_ranges(Rng& rng, Gemm p, size_t index) {
  const size_t which = 1 + index % ((1u << size_count) - 1);
  for (size_t i = 0; i < size_count; ++i) {
    if (!(which >> i & 1)) continue;
    Sizes most = p.sizes();
    most[Size(i)] = std::max<int64_t>(most[Size(i)], 2) + (Size(i) == Size::batch ? 1 : 0);
    p.m = most.m, p.n = most.n, p.k = most.k, p.batch = most.batch;
    p.least[i] = int64_t(rng() % 3 == 0 ? 0 : between(rng, 1, std::max<int64_t>(1, most[Size(i)] / 4)));
    if (*p.least[i] >= most[Size(i)]) p.least[i] = 0;
  }
  return p;
}

/// Legal at some point of the ranges, and so for all of them.
Choice random_choice(Rng& rng, const Gemm& p, const Device& device) {
  const std::vector<Sizes> points = default_points(p);
  const Gemm one = p.at(points[rng() % points.size()]);
  const Space space(one, "cpu", device);
  if (!space.size()) throw std::runtime_error("no config is legal: " + one.key());
  for (int tries = 0; tries < 1000; ++tries)
    if (const Choice c = space.choice(rng() % space.size()); why_illegal(p, "cpu", device, c).empty())
      return c;
  return space.default_choice();
}

/// A size near a border of what the config computes at once, or an end.
int64_t hard_size(Rng& rng, int64_t least, int64_t most, int64_t tile) {
  least = std::max<int64_t>(least, 1);
  const int64_t x = pick(rng, {least, most, least + 1, most - 1, tile - 1, tile, tile + 1, 2 * tile + 1,
                               between(rng, least, most)});
  return std::clamp(x, least, most);
}

Sizes hard_sizes(Rng& rng, const Gemm& p, const Config& config) {
  Sizes sizes = p.sizes();
  for (size_t i = 0; i < size_count; ++i)
    if (p.least[i]) {
      const int64_t tile = Size(i) == Size::m   ? config["mr"]
                           : Size(i) == Size::n ? config["nv"] * 4
                           : Size(i) == Size::k ? config["kc"]
                                                : 1;
      sizes[Size(i)] = hard_size(rng, *p.least[i], p.sizes()[Size(i)], tile);
    }
  if (p.ranged(Size::k) && rng() % 8 == 0) sizes.k = 0;
  return sizes;
}

const Kernel& main_of(const KernelFile& file) {
  EXPECT_EQ(file.status, "ok") << file.detail;
  if (file.status != "ok") throw std::runtime_error("no kernel");
  return *file.find("main");
}

Verdict verdict_at(const Kernel& kernel, const Gemm& p, const Sizes& sizes) {
  GemmCases cases(problem_at(p, sizes), 7);
  return cases.verify(LoadedKernel(kernel), kernel.workspace, [](const std::string&) {});
}

class RandomTriples : public testing::TestWithParam<int> {};

TEST_P(RandomTriples, MatchTheReference) {
  constexpr int kPairs = 15, kSizes = 6;
  Rng rng(4000 + uint32_t(GetParam()));
  for (int i = 0; i < kPairs; ++i) {
    const auto index = size_t(GetParam() * kPairs + i);
    Gemm p = random_problem(rng, index);
    p.epilogue = random_epilogue(rng);
    if (rng() % 3 == 0) {
      p.gate = EpilogueOp::silu;
      std::erase_if(p.epilogue,
                    [](EpilogueOp op) { return op == EpilogueOp::scale_a || op == EpilogueOp::scale_b; });
    }
    p = with_ranges(rng, p, index);
    ASSERT_NO_THROW(validate(p)) << p.key();
    const Device device = device_of_level(std::min(host_level(), pick(rng, {4, 4, 3, 1})));
    const Choice choice = random_choice(rng, p, device);
    SCOPED_TRACE(p.key() + " | " + choice.text());
    const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
    for (int size = 0; size < kSizes; ++size) {
      const Sizes sizes = hard_sizes(rng, p, choice.config);
      const Verdict verdict = verdict_at(main_of(file), p, sizes);
      EXPECT_EQ(verdict.status, "ok") << verdict.detail;
    }
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Share, RandomTriples, testing::Range(0, 4));

/// What a build links of such a problem: the awkward kernel and fallbacks, at every size of theirs.
TEST(Ranges, AwkwardKernelsAndFallbacks) {
  for (const char* key :
       {"gemm m=1..300 n=200 k=300 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4",
        "gemm m=0..70 n=1..90 k=0..200 batch=1..3 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none "
        "align=4"}) {
    const Gemm p = Gemm::parse(key);
    const Device device = device_of_level(host_level());
    const Choice choice = Space(p.at(p.sizes()), "cpu", device).default_choice();
    EXPECT_GT(verify_all(compile_candidate(p, "cpu", choice, true, true), choice.text()), 0);
  }
}

/// Faults as a template might have them, at a size where they show.
TEST(Ranges, PlantedFaultsAreFound) {
  const Gemm p = Gemm::parse(
      "gemm m=1..100 n=70 k=40 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=bias align=4");
  const Device device = device_of_level(std::min<int64_t>(3, host_level()));
  const Choice choice = Space(p.at(p.sizes()), "cpu", device).default_choice();
  const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
  const Kernel& good = main_of(file);
  const Sizes sizes = {17, 70, 40, 1};
  EXPECT_EQ(verdict_at(good, p, sizes).status, "ok");
  Kernel grid_of_the_largest = good;
  grid_of_the_largest.tile_rules = {};
  EXPECT_EXIT(
      std::exit(verdict_at(grid_of_the_largest, p, sizes).status == "ok" ? 0 : 1),
      [](int status) { return status != 0; }, "");
  Kernel one_tile_short = good;
  one_tile_short.tile_rules[0].steps[0] *= 2;
  EXPECT_NE(verdict_at(one_tile_short, p, {2 * choice.config["mr"], 70, 40, 1}).status, "ok");
  Kernel other_m = good; // the tail has rows of another call
  for (std::string& name : other_m.args)
    if (name == "m") name = "n";
  EXPECT_EXIT(
      std::exit(verdict_at(other_m, p, sizes).status == "ok" ? 0 : 1), [](int status) { return status != 0; },
      "");
}

TEST(Ranges, PointsAndVerifiedSizes) {
  const Gemm p = Gemm::parse(
      "gemm m=1..8192 n=4096 k=4096 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4");
  std::vector<int64_t> points;
  for (const Sizes& at : default_points(p)) points.push_back(at.m);
  EXPECT_EQ(points, (std::vector<int64_t>{1, 4, 16, 64, 151, 256, 603, 1024, 3702, 8192}));
  for (const Sizes& at : verified_sizes(p)) EXPECT_TRUE(p.takes(at)) << at.m;
  EXPECT_EQ(verified_sizes(p).front().m, 1);
}

} // namespace
} // namespace deepgen::ranges_test
