#include "measure/race/statistics.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace deepgen {
namespace {

constexpr int kResamples = 2000;

} // namespace

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const double at = q * double(values.size() - 1);
  const auto below = std::min(size_t(at), values.size() - 1);
  const auto nth = values.begin() + std::ptrdiff_t(below);
  std::nth_element(values.begin(), nth,
                   values.end()); // far cheaper than to sort: intervals take thousands of medians
  if (below + 1 == values.size()) return *nth;
  return *nth + (at - double(below)) * (*std::min_element(nth + 1, values.end()) - *nth);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

Interval bootstrap_median(const std::vector<double>& values, uint64_t seed) {
  if (values.empty()) return {};
  std::mt19937_64 random(seed);
  std::vector<double> medians, resample(values.size());
  medians.reserve(kResamples);
  for (int i = 0; i < kResamples; ++i) {
    // Not std::uniform_int_distribution: its sequence differs between libraries.
    for (double& x : resample) x = values[random() % values.size()];
    medians.push_back(median(resample));
  }
  return {quantile(medians, 0.025), median(values), quantile(medians, 0.975)};
}

double noise_floor(const std::vector<double>& log_ratios) {
  const size_t count = log_ratios.size();
  if (count < kFewestForNoise) return 0;
  const size_t block = std::min(count, std::max<size_t>(5, count / 6));
  std::mt19937_64 random(count);
  std::vector<double> deviations, resample;
  for (int i = 0; i < kResamples; ++i) {
    resample.clear();
    while (resample.size() < count) {
      const size_t first = random() % (count - block + 1), length = std::min(block, count - resample.size());
      resample.insert(resample.end(), log_ratios.begin() + long(first),
                      log_ratios.begin() + long(first + length));
    }
    deviations.push_back(std::fabs(median(resample)));
  }
  return std::expm1(quantile(std::move(deviations), 0.95));
}

} // namespace deepgen
