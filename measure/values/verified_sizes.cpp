#include "measure/values/verified_sizes.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr int64_t kSmall = 32; ///< every size of a range up to it
constexpr double kMostOperations = 10e9;

struct VerifiedRange {
  Size size;
  int64_t least, most; ///< without 0
};

std::vector<VerifiedRange> ranges_of(const Gemm& p) {
  std::vector<VerifiedRange> ranges;
  for (size_t i = 0; i < size_count; ++i)
    if (p.least[i]) ranges.push_back({Size(i), std::max<int64_t>(*p.least[i], 1), p.sizes()[Size(i)]});
  return ranges;
}

/// An odd one in the middle, by ratio.
int64_t middle(const VerifiedRange& r) {
  const auto mean = int64_t(std::sqrt(double(r.least) * double(r.most)));
  return std::clamp(mean | 1, r.least, r.most);
}

/// The step-th of several: with another stride in each range, so that they do not move together.
int64_t mixed(const VerifiedRange& r, size_t number, int64_t step) {
  constexpr int64_t kStrides[size_count] = {1, 5, 7, 3};
  return r.least + step * kStrides[number] % (r.most - r.least + 1);
}

bool is_small(const std::vector<VerifiedRange>& ranges) {
  return std::all_of(ranges.begin(), ranges.end(), [](const auto& r) { return r.most - r.least < kSmall; });
}

std::vector<Sizes> chosen(const Gemm& p, const std::vector<VerifiedRange>& ranges) {
  std::vector<Sizes> all;
  const auto add = [&](auto value_of) {
    Sizes sizes = p.sizes();
    for (size_t i = 0; i < ranges.size(); ++i) sizes[ranges[i].size] = value_of(ranges[i], i);
    all.push_back(sizes);
  };
  add([](const VerifiedRange& r, size_t) { return r.least; });
  if (is_small(ranges)) {
    int64_t most = 0;
    for (const VerifiedRange& r : ranges) most = std::max(most, r.most - r.least);
    for (int64_t step = 1; step < most; ++step)
      add([&](const VerifiedRange& r, size_t number) { return mixed(r, number, step); });
  } else {
    add([](const VerifiedRange& r, size_t) { return middle(r); });
  }
  add([](const VerifiedRange& r, size_t) { return r.most; });
  return all;
}

} // namespace

std::vector<Sizes> verified_sizes(const Gemm& p) {
  const std::vector<VerifiedRange> ranges = ranges_of(p);
  if (ranges.empty()) return {p.sizes()};
  std::vector<Sizes> all = chosen(p, ranges);
  const auto too_long = [&](const Sizes& x) { return p.at(x).flops() > kMostOperations; };
  // Instead of what takes too long, the largest of the longest range that does not.
  std::vector<Sizes> kept = {all.front()};
  for (Sizes x : all) {
    for (const VerifiedRange& r : ranges)
      while (too_long(x) && x[r.size] > r.least) x[r.size] = std::max(r.least, x[r.size] / 2 | 1);
    if (!too_long(x)) kept.push_back(x);
  }
  if (p.ranged(Size::k)) kept.push_back(kept.front()), kept.back().k = 0;
  const auto rank = [](const Sizes& x) { return std::array{x.m, x.n, x.k, x.batch}; };
  std::sort(kept.begin() + 1, kept.end(), [&](const Sizes& x, const Sizes& y) { return rank(x) < rank(y); });
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

} // namespace deepgen
