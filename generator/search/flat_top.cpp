#include "generator/search/flat_top.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deepgen {
namespace {

/// A quarter of fewer tells too little of the tail: of a product of few rows with times between 0.4 and 2 of
/// the default's (cpu_f32_8x1024x1024_nt), two of 20 searches ended behind 20 trials, and both lost more than
/// 2 %.
constexpr size_t kFewest = 32;
constexpr double kConfidence = 0.95, kTailIndex = 2;

} // namespace

double smallest_ratio_bound(const std::vector<Trial>& trials) {
  std::vector<double> logs;
  for (const Trial& t : trials)
    if (t.round == 0 && std::isfinite(t.ratio)) logs.push_back(std::log(t.ratio));
  if (logs.size() < kFewest) return 0;
  const size_t k = logs.size() / 4;
  std::nth_element(logs.begin(), logs.begin() + std::ptrdiff_t(k), logs.end());
  const double next = logs[k], least = *std::min_element(logs.begin(), logs.begin() + std::ptrdiff_t(k));
  const double share = std::pow(1 - std::pow(1 - kConfidence, 1 / double(k)), 1 / kTailIndex);
  return std::exp(least - share / (1 - share) * (next - least));
}

} // namespace deepgen
