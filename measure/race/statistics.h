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

/// What the same kernel differs from itself, told by as many rounds as others are compared by: p95 of
/// |median| over resamples of the log-ratios A/A in blocks of consecutive rounds (a moving-block bootstrap).
/// Blocks of a sixth of the rounds, at least 5, so that drift counts. 0 when there are fewer than
/// kFewestForNoise rounds.
constexpr size_t kFewestForNoise = 5;
double noise_floor(const std::vector<double>& log_ratios);

} // namespace deepgen
