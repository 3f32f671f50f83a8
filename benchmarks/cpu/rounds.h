// What both programs share: the rows of the suite, and arms that are timed in rounds of random order.
#pragma once

#include "peers.h"

#include <suite.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

inline const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#include "suite_rows.inc"
  };
  return all;
}

struct Timed {
  Arm arm;
  int64_t calls = 1; ///< per sample
  std::vector<double> seconds;
};

inline double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[size_t(q * double(v.size() - 1) + 0.5)];
}

/// Whether two programs may have computed the same: `count` elements of D.
inline bool agrees(const Row& row, const float* d, const float* expected, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!(std::abs(d[i] - expected[i]) <= 2e-5f * std::sqrt(float(row.k)) + 1e-5f * std::abs(expected[i])))
      return false;
  return true;
}

/// Adds a sample of every arm in each round: `sample(arm)`, seconds of one call.
template <typename Sample>
void time_in_rounds(std::vector<Timed>& arms, int rounds, const Sample& sample) {
  std::mt19937 rng(1);
  std::vector<size_t> order(arms.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), rng);
    for (size_t i : order) arms[i].seconds.push_back(sample(arms[i]));
  }
}

/// Median and quartiles of time(peer) / time(DeepGen), round by round: above 1, DeepGen is faster.
struct Ratio {
  double median, low, high;
};
inline Ratio ratio(const Timed& peer, const Timed& own) {
  std::vector<double> r;
  for (size_t i = 0; i < own.seconds.size(); ++i) r.push_back(peer.seconds[i] / own.seconds[i]);
  return {quantile(r, 0.5), quantile(r, 0.25), quantile(r, 0.75)};
}
