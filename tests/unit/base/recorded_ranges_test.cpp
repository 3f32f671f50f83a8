// The decision on the finals of a function with a range that were recorded on an H200, where six kernels were
// too few: at M = 1024 the one that was linked took 1.16 times the best finalist's time and lost to the
// default.
#include "base/ranges/crossover.h"
#include "base/search/ranged_decision.h"
#include "base/search/tune_points_json.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace deepgen::recorded_ranges_test {
namespace {

constexpr size_t kKernels = 13;
constexpr int64_t kCode[kKernels] = {33112, 8120,  13656, 12632, 17752, 15704, 38232,
                                     29016, 38488, 9144,  8120,  14680, 11608};

struct Row {
  int64_t m;
  double ratios[kKernels];
};

/// Of benchmarks/gpu/results/h200_ranges_balanced/final.jsonl.gz: time over the default's, which comes first;
/// geometric means over sustained calls and bursts, as decide_ranges() has them.
constexpr Row kMatrix[] = {
    {1, {1, 0.4411, 0.5789, 0.8383, 1.011, 1.362, 1.139, 1.779, 1.008, 0.4488, 0.4512, 0.5739, 0.8363}},
    {2, {1, 0.4452, 0.5686, 0.8365, 1, 1.383, 1.137, 1.773, 1.004, 0.8693, 0.4547, 0.5689, 0.8389}},
    {4, {1, 0.453, 0.5608, 0.8286, 0.9904, 1.365, 1.142, 1.788, 1.018, 1.615, 0.4578, 0.5574, 0.8279}},
    {8, {1, 0.7167, 0.5264, 0.8127, 0.9639, 1.367, 1.151, 1.797, 1.018, 3.02, 0.8795, 0.5289, 0.8114}},
    {16, {1, 1.211, 0.4921, 0.7778, 0.9179, 1.337, 1.158, 1.809, 1.028, 5.712, 1.618, 0.51, 0.7785}},
    {18, {1, 1.425, 0.4937, 0.7783, 0.9164, 1.35, 1.148, 1.801, 1.022, 6.353, 1.956, 0.5087, 0.7806}},
    {32, {1, 2.065, 0.4912, 0.7088, 0.7913, 1.298, 1.16, 1.817, 1.031, 11.1, 3.002, 0.5152, 0.7051}},
    {64, {1, 3.676, 0.561, 0.4726, 0.5876, 1.053, 1.157, 1.81, 1.026, 21.64, 5.648, 0.5302, 0.4921}},
    {70, {1, 4.111, 0.9421, 1.324, 0.5897, 1.006, 1.159, 1.812, 1.029, 23.63, 6.309, 0.9663, 1.351}},
    {98, {1, 5.444, 0.9812, 1.136, 1.085, 0.735, 1.155, 1.806, 1.022, 32.73, 8.601, 0.9908, 1.156}},
    {151, {1, 7.296, 0.959, 1.435, 0.5691, 1.374, 1.059, 1.653, 0.9345, 45.72, 11.75, 0.9644, 1.46}},
    {166, {1, 8.642, 1.248, 1.381, 1.596, 1.382, 1.227, 1.768, 1.003, 54.04, 13.97, 1.253, 1.405}},
    {197, {1, 10.44, 1.542, 2.07, 1.393, 1.242, 1.159, 1.817, 1.025, 65.56, 16.97, 1.543, 2.11}},
    {256, {1, 12.94, 1.317, 1.397, 1.712, 0.7473, 1.152, 1.811, 1.018, 83.91, 21.31, 1.312, 1.426}},
    {282, {1, 8.654, 0.9804, 1.319, 0.8323, 1.308, 0.6928, 1.091, 0.8619, 55.81, 14.27, 1.017, 1.341}},
    {393, {1, 12.16, 1.528, 1.85, 0.8438, 1.588, 0.7334, 1.109, 0.8238, 79.35, 20.25, 1.532, 1.885}},
    {603, {1, 15.51, 1.752, 2.002, 1.25, 1.076, 0.6433, 0.9605, 0.8394, 100.8, 25.6, 1.745, 2.03}},
    {663, {1, 14.01, 1.572, 1.831, 1.352, 1.237, 1.033, 0.7822, 0.8601, 92.15, 23.37, 1.574, 1.844}},
    {786, {1, 15.35, 1.718, 2.002, 1.114, 1.414, 1.003, 0.7358, 0.8974, 100, 25.32, 1.728, 2.005}},
    {1024, {1, 25.11, 2.753, 2.837, 1.992, 1.417, 1.147, 0.9809, 1.136, 161.8, 40.89, 2.765, 2.881}},
    {1126, {1, 19.44, 2.23, 2.351, 1.815, 1.245, 0.8242, 1.326, 0.8879, 126.8, 32.09, 2.231, 2.371}},
    {1947, {1, 19.94, 2.343, 2.413, 1.67, 1.419, 0.9746, 0.8071, 0.8806, 130.5, 33.05, 2.323, 2.426}},
    {3702, {1, 22.32, 2.72, 2.769, 1.867, 1.421, 1.047, 0.9385, 0.9164, 146.5, 36.95, 2.704, 2.779}},
    {4072, {1, 22.04, 2.715, 2.739, 1.79, 1.403, 0.9536, 0.841, 0.8881, 140.9, 35.59, 2.704, 2.729}},
    {5507, {1, 21.34, 2.503, 2.602, 1.745, 1.372, 0.8495, 0.8674, 0.8702, 131.2, 34.24, 2.522, 2.565}},
    {8192, {1, 22.26, 2.643, 2.574, 1.831, 1.311, 0.9353, 0.809, 0.8192, 132.2, 33.4, 2.643, 2.617}},
};

class RecordedRanges : public testing::Test {
protected:
  Gemm p;
  RecordLog log;

  void SetUp() override {
    p.m = 8192, p.n = p.k = 4096, p.least[0] = 1;
    log.noise_floor = 0.0065; // of both regimes
    for (size_t k = 0; k < kKernels; ++k) {
      Record r;
      r.stage = "final", r.problem = p.key(), r.arch = "sm_90a", r.origin = k ? "model" : "default";
      r.choice = {"k" + std::to_string(k), {}}, r.sha256 = "k" + std::to_string(k), r.code_bytes = kCode[k];
      for (const Row& row : kMatrix) {
        const double x = row.ratios[k];
        r.points.push_back({{row.m, 4096, 4096, 1}, {x * 1e-5, x * 1e-5, x * 1e-5, x, x, x, 5, 1}});
      }
      r.timing = mean_timing(r.points);
      log.records.push_back(r);
    }
  }

  RangedDecision decide(size_t kernels) {
    TunePoints points = default_tune_points(p);
    points.kernels = kernels;
    log.environment["tune_at"] = tune_points_json(points);
    return decide_ranges(p, log);
  }

  static double ratio_at(const RangedDecision& d, const Row& row) {
    for (const RangedWinner& w : d.parts)
      if (w.taken.holds({row.m, 4096, 4096, 1})) return row.ratios[std::stoul(w.record.sha256.substr(1))];
    ADD_FAILURE() << "nothing takes " << row.m;
    return 0;
  }
  static std::vector<std::string> kernels_of(const RangedDecision& d) {
    std::vector<std::string> names;
    for (const RangedWinner& w : d.parts) names.push_back(w.record.sha256);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }
};

TEST_F(RecordedRanges, AreThePointsOfToday) {
  const std::vector<Sizes> at = final_points(default_tune_points(p)).at;
  ASSERT_EQ(at.size(), std::size(kMatrix));
  for (size_t i = 0; i < at.size(); ++i) EXPECT_EQ(at[i].m, kMatrix[i].m);
}

TEST_F(RecordedRanges, TheDefaultNumberOfKernelsKeepsTheBound) {
  const RangedDecision d = decide(TunePoints().kernels);
  ASSERT_TRUE(d.bound);
  EXPECT_TRUE(d.bound->kept);
  EXPECT_EQ(kernels_of(d).size(), 8u) << "no more than it takes";
  EXPECT_GT(d.parts.size(), 8u) << "some of them take several parts";
  for (const Row& row : kMatrix) {
    const double best = *std::min_element(std::begin(row.ratios), std::end(row.ratios));
    EXPECT_LE(ratio_at(d, row), best * (1 + kMostRegret + 0.01)) << row.m;
    EXPECT_LE(ratio_at(d, row), 1.01) << "behind the default at " << row.m;
  }
  EXPECT_LT(d.regret, 0.005);
}

TEST_F(RecordedRanges, TooFewKernelsAreToldOf) {
  for (size_t kernels : {1, 3, 6, 7}) {
    const RangedDecision d = decide(kernels);
    EXPECT_LE(kernels_of(d).size(), kernels);
    ASSERT_TRUE(d.bound);
    EXPECT_FALSE(d.bound->kept);
    EXPECT_EQ(d.bound->needed, 8u);
    EXPECT_NE(d.reason.find("KERNELS 8 would keep it"), std::string::npos) << d.reason;
  }
}

TEST_F(RecordedRanges, MoreKernelsAreNoWorse) {
  double before = 1e9;
  for (size_t kernels : {1, 2, 4, 6, 7, 8, 10, 12}) {
    const RangedDecision d = decide(kernels);
    double worst = 0;
    for (const Row& row : kMatrix)
      worst =
          std::max(worst, ratio_at(d, row) / *std::min_element(std::begin(row.ratios), std::end(row.ratios)));
    EXPECT_LE(worst, before * 1.02) << kernels << " kernels"; // neighbours share one within the noise
    before = worst;
  }
}

} // namespace
} // namespace deepgen::recorded_ranges_test
