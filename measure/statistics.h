// Order statistics and intervals of small samples, seeded and deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deepgen {

/// Linear interpolation between order statistics; 0 for an empty sample.
double quantile(std::vector<double> values, double q);
double median(std::vector<double> values);

/// 95 % percentile-bootstrap interval of the median.
struct Interval {
  double low = 0, middle = 0, high = 0;
};
Interval bootstrap_median(const std::vector<double>& values, uint64_t seed);

/// What the same kernel differs from itself: p95 of |median| over sliding blocks of consecutive rounds of the
/// log-ratios A/A. Blocks of a sixth of the rounds, at least 5: long enough to average single disturbances,
/// short enough to show drift. 0 when there are fewer than kFewestForNoise rounds.
constexpr size_t kFewestForNoise = 5;
double noise_floor(const std::vector<double>& log_ratios);

} // namespace deepgen
