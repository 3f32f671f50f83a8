// How many rows groups have while configs are timed: estimates are of the mean of those calls.
#pragma once

#include "base/problem/gemm.h"

#include <algorithm>
#include <cmath>

namespace deepgen {

/// The sum over all groups of what is expected of `f(rows)`, where rows are shared out evenly, or `skewed`:
/// as in measure/values/groups.cpp the group of rank r has a share of 1 / (r + 2), and each row finds its
/// group by chance. The number of a group's rows is then nearly normal; its mean and sqrt(3) deviations to
/// both sides stand for it (Gauss-Hermite).
template <typename F>
double over_groups(const Gemm& p, bool skewed, const F& f) {
  if (!skewed) return double(p.groups) * f(double(p.group_rows()));
  double total = 0, sum = 0;
  for (int64_t r = 0; r < p.groups; ++r) total += 1 / double(r + 2);
  for (int64_t r = 0; r < p.groups; ++r) {
    const double share = 1 / double(r + 2) / total, mean = double(p.m) * share;
    const double aside = std::sqrt(3 * mean * (1 - share));
    auto at = [&](double rows) { return f(std::max(0.0, std::round(rows))); };
    sum += (4 * at(mean) + at(mean - aside) + at(mean + aside)) / 6;
  }
  return sum;
}

} // namespace deepgen
