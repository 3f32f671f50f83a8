// What the estimate ranks first, and the fallbacks of cpu_tile that it chooses.
#include "templates/core/cheapest.h"

#include "generator/space/space.h"
#include "templates/cpu/cpu_cut.h"
#include "templates/cpu/cpu_tile.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deepgen::cheapest_test {
namespace {

Gemm problem(const std::string& sizes, const std::string& rest = "epilogue=none",
             const std::string& layout = "nt", const std::string& type = "f32") {
  return Gemm::parse("gemm " + sizes + " batch=1 a=" + type + " b=" + type + " d=" + type + " acc=" + type +
                     " layout=" + layout + " " + rest + (type == "f32" ? " align=4" : " align=8"));
}

/// Shapes of all kinds: large, few rows, few columns, shallow, single.
std::vector<Gemm> problems() {
  std::vector<Gemm> all;
  for (const char* sizes :
       {"m=256 n=2304 k=768", "m=1 n=4096 k=4096", "m=8 n=512 k=512", "m=4096 n=32 k=256", "m=33 n=77 k=129",
        "m=1 n=1 k=1", "m=1 n=1 k=1000", "m=3 n=5 k=1", "m=2 n=17 k=2", "m=100 n=1 k=64", "m=64 n=64 k=3"})
    for (const char* layout : {"nn", "nt", "tn", "tt"})
      for (const char* type : {"f32", "f64"})
        all.push_back(problem(sizes, "epilogue=bias+residual", layout, type));
  for (const char* sizes : {"m=64 n=128 k=256", "m=1 n=3 k=2"})
    all.push_back(problem(sizes, "gate=silu epilogue=none"));
  return all;
}

Config at_level(int64_t level) {
  return Config::parse("isa=" + std::to_string(level) +
                       " form=0 mr=1 nv=1 kc=1 ku=1 pack=0 mc=1 nc=1 loops=0 prefetch=0");
}

TEST(Cheapest, IsTheFirstOfTheSpace) {
  const CpuTile source;
  for (const Gemm& p : {problem("m=256 n=2304 k=768"), problem("m=8 n=512 k=512"),
                        problem("m=33 n=77 k=129", "epilogue=relu", "nn")})
    for (int64_t level : {1, 3, 4}) {
      Device device;
      device.isa = level;
      EXPECT_EQ((Choice{source.name(), *cheapest(source, p, device)}),
                Space(p, "cpu", device).default_choice())
          << p.key();
    }
}

TEST(Fallbacks, AreLegalWhereTheyRunAndTheEstimatesBest) {
  const CpuTile source;
  for (const Gemm& p : problems()) {
    const std::vector<Choice> fallbacks = source.fallbacks(p, "cpu", at_level(4));
    ASSERT_EQ(fallbacks.size(), 2u) << p.key();
    for (size_t i = 0; i < 2; ++i) {
      Device device;
      device.isa = i ? 1 : 3, device.l2 = 512 << 10, device.l3 = 8 << 20;
      const Config& config = fallbacks[i].config;
      EXPECT_EQ(config["isa"], device.isa) << p.key();
      EXPECT_EQ(source.why_illegal(p, device, config), "") << p.key();
      EXPECT_EQ(config, *cheapest(source, p, device)) << p.key();
    }
  }
}

Gemm on_threads(const std::string& sizes, int threads) {
  Gemm p = problem(sizes);
  p.threads = threads;
  return p;
}

/// What takes longest is the largest task, so that one row is cut along N and few columns along M.
TEST(Cuts, TheEstimateKnowsThem) {
  const CpuTile source;
  const Device device = modest_cpu(4);
  const auto cut = [&](const Gemm& p) { return TaskCut((*cheapest(source, p, device))["cut"]); };
  EXPECT_EQ(cut(on_threads("m=1 n=4096 k=512", 8)), TaskCut::columns);
  EXPECT_EQ(cut(on_threads("m=4096 n=8 k=512", 8)), TaskCut::rows);
  EXPECT_FALSE(has_cut(problem("m=64 n=64 k=64")));
  Gemm batch = on_threads("m=64 n=64 k=64", 8);
  batch.batch = 4;
  EXPECT_FALSE(has_cut(batch));
}

TEST(Cuts, ThoseOfOneTaskAreIllegal) {
  const CpuTile source;
  const Device device = modest_cpu(4);
  const auto why = [&](const Gemm& p, TaskCut cut) {
    Config config = *cheapest(source, p, device);
    for (auto& [name, value] : config.values)
      if (name == "cut") value = int64_t(cut);
    return source.why_illegal(p, device, config);
  };
  EXPECT_NE(why(on_threads("m=1 n=4096 k=512", 8), TaskCut::rows).find("cut=1"), std::string::npos);
  EXPECT_NE(why(on_threads("m=1 n=4096 k=512", 8), TaskCut::both).find("cut=3"), std::string::npos);
  EXPECT_NE(why(on_threads("m=4096 n=1 k=512", 8), TaskCut::columns).find("cut=2"), std::string::npos);
  EXPECT_NE(why(on_threads("m=512 n=512 k=512", 2), TaskCut::both).find("cut=3"), std::string::npos);
  EXPECT_EQ(why(on_threads("m=512 n=512 k=512", 4), TaskCut::both), "");
}

TEST(Cuts, ShareOfAThread) {
  const Gemm p = on_threads("m=1000 n=256 k=64", 8); // 100 x 8 tiles
  const auto share = [&](TaskCut cut) {
    const Gemm part = share_of(p, cut, 10, 32);
    return std::pair{part.m, part.n};
  };
  EXPECT_EQ(share(TaskCut::rows), std::pair(int64_t(130), int64_t(256)));
  EXPECT_EQ(share(TaskCut::columns), std::pair(int64_t(1000), int64_t(32)));
  EXPECT_EQ(share(TaskCut::both), std::pair(int64_t(500), int64_t(64)))
      << "100 tiles are 2 times 50 and 4 times 25";
}

TEST(Fallbacks, OfLesserLevelsAlone) {
  const CpuTile source;
  const Gemm p = problem("m=33 n=77 k=129");
  EXPECT_EQ(source.fallbacks(p, "cpu", at_level(3)).size(), 1u);
  EXPECT_EQ(source.fallbacks(p, "cpu", at_level(1)).size(), 0u);
  EXPECT_EQ(source.fallbacks(p, "cpu", at_level(4)), source.fallbacks(p, "cpu", at_level(4)))
      << "nothing of the host";
}

} // namespace
} // namespace deepgen::cheapest_test
