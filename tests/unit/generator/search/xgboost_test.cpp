// Of builds with libxgboost: its trees, and the strategy on recorded spaces.
#include "base/text/error.h"
#include "generator/replay/replay.h"
#include "generator/search/regression.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

namespace deepgen::xgboost_test {
namespace {

TEST(Xgboost, LearnsAnInteractionAndIsDeterministic) {
  Table known(2), asked(2);
  std::vector<float> labels;
  for (int x = 0; x < 10; ++x)
    for (int y = 0; y < 6; ++y) {
      asked.append({float(x), float(y)});
      if ((x + y) % 3 == 0) continue;
      known.append({float(x), float(y)});
      labels.push_back(x < 5 && y < 3 ? 1.0F : 0.2F);
    }
  const std::vector<double> expected = xgboost_trees(known, labels, asked);
  ASSERT_EQ(expected.size(), 60u);
  for (int x = 0; x < 10; ++x)
    for (int y = 0; y < 6; ++y)
      EXPECT_NEAR(expected[size_t(x * 6 + y)], x < 5 && y < 3 ? 1 : 0.2, 0.1) << x << " " << y;
  EXPECT_EQ(xgboost_trees(known, labels, asked), expected);
}

/// Half of the searches, over eight seeds.
TEST(Xgboost, FindsMoreThanChanceDoes) {
  const Replay replay(RecordedSpace::read(paths::in_source("benchmarks/search/sm_90a_f32_1024.space.zst")));
  const auto regret = [&](const char* strategy) {
    ReplayOptions o;
    o.search.strategy = strategy, o.search.trials = 64;
    std::vector<ReplayedSearch> searches;
    for (uint64_t seed = 1; seed <= 8; ++seed) searches.push_back(replay.run(o, seed));
    return summarize(replay, searches).points.back().median;
  };
  EXPECT_LE(regret("xgboost"), 0.005);
  EXPECT_GT(regret("random"), 0.01);
}

} // namespace
} // namespace deepgen::xgboost_test
