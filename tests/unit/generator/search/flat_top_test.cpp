// What a first round says about the best that a search can still find.
#include "generator/search/flat_top.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace deepgen::flat_top_test {
namespace {

/// A round of candidates whose minimum is smooth over so many parameters: ratios `least` and more.
std::vector<Trial> round_of(uint64_t seed, size_t count, double parameters, double least, double spread) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  std::vector<Trial> trials;
  for (size_t i = 0; i < count; ++i)
    trials.push_back(
        {i, least * std::exp(spread * std::pow(uniform(random), 2 / parameters)), true, "model", 0});
  return trials;
}

/// How often the bound is above the smallest ratio that there is.
int times_wrong(size_t count, double parameters) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed)
    wrong += smallest_ratio_bound(round_of(seed, count, parameters, 0.9, 0.3)) > 0.9 + 1e-12;
  return wrong;
}

TEST(FlatTop, TheBoundHoldsAsOftenAsItSays) {
  for (size_t count : {32, 40}) {
    EXPECT_LE(times_wrong(count, 4), 70)
        << count << " candidates: 5 % of 1000, and three standard deviations";
    EXPECT_LE(times_wrong(count, 2), 70) << "where fewer parameters matter, it is more careful than it says";
  }
}

TEST(FlatTop, IsNearWhereTheFastestAreAlike) {
  EXPECT_GT(smallest_ratio_bound(round_of(1, 40, 4, 0.999, 0.02)), 0.98);
  EXPECT_LT(smallest_ratio_bound(round_of(1, 40, 4, 0.999, 0.3)), 0.95);
}

TEST(FlatTop, FewCandidatesSayNothing) {
  EXPECT_EQ(smallest_ratio_bound(round_of(1, 31, 4, 1, 0.001)), 0);
  std::vector<Trial> trials = round_of(1, 40, 4, 1, 0.001);
  for (size_t i = 0; i < 30; ++i) trials[i].round = 1; // of later rounds
  EXPECT_EQ(smallest_ratio_bound(trials), 0);
  trials = round_of(1, 40, 4, 1, 0.001);
  for (size_t i = 0; i < 30; ++i) trials[i].ratio = INFINITY; // failed
  EXPECT_EQ(smallest_ratio_bound(trials), 0);
}

} // namespace
} // namespace deepgen::flat_top_test
