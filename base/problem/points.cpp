#include "base/problem/points.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace deepgen {
namespace {

/// Evenly spaced ones, with both ends.
std::vector<int64_t> thinned(const std::vector<int64_t>& values, size_t count) {
  if (values.size() <= count) return values;
  std::vector<int64_t> out;
  for (size_t i = 0; i < count; ++i) out.push_back(values[i * (values.size() - 1) / (count - 1)]);
  return out;
}

std::vector<int64_t> values_of(int64_t least, int64_t most, size_t count) {
  std::vector<int64_t> values = {std::max<int64_t>(least, 1)};
  for (int64_t power = 1; power < most; power *= 4)
    if (power > values.front()) values.push_back(power);
  if (values.back() != most) values.push_back(most);
  return thinned(values, count);
}

/// The i-th of `count`, spread over all values.
int64_t spread(const std::vector<int64_t>& values, size_t i, size_t count) {
  return values[count == 1 ? values.size() - 1 : i * (values.size() - 1) / (count - 1)];
}

} // namespace

std::vector<Sizes> default_points(const Gemm& p, size_t most) {
  std::vector<std::pair<Size, std::vector<int64_t>>> ranges;
  for (size_t i = 0; i < size_count; ++i)
    if (p.least[i]) ranges.push_back({Size(i), values_of(*p.least[i], p.sizes()[Size(i)], most)});
  const size_t corners = ranges.size() > 1 ? ranges.size() : 0;
  size_t steps = 1;
  for (const auto& range : ranges) steps = std::max(steps, range.second.size());
  steps = std::min(steps, std::max<size_t>(most - std::min(most, corners), 2));
  std::vector<Sizes> points;
  for (size_t i = 0; i < steps; ++i) {
    Sizes at = p.sizes();
    for (const auto& [size, values] : ranges) at[size] = spread(values, i, steps);
    points.push_back(at);
  }
  for (size_t i = 0; i < corners; ++i) {
    Sizes at = p.sizes();
    at[ranges[i].first] = ranges[i].second.front();
    points.push_back(at);
  }
  const auto rank = [](const Sizes& x) {
    return std::tuple(double(x.m) * double(x.n) * double(x.k) * double(x.batch), x.m, x.n, x.k);
  };
  std::sort(points.begin(), points.end(), [&](const Sizes& x, const Sizes& y) { return rank(x) < rank(y); });
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

std::optional<Size> split_size(const Gemm& p) {
  for (size_t i = 0; i < size_count; ++i)
    if (p.least[i]) return Size(i);
  return std::nullopt;
}

namespace {

/// Ascending, perhaps with the ends; none where several sizes differ.
std::vector<Sizes> between_points(const Sizes& from, const Sizes& to) {
  constexpr double kAbove = 1.1;
  size_t differ = 0, which = 0;
  for (size_t s = 0; s < size_count; ++s)
    if (from[Size(s)] != to[Size(s)]) ++differ, which = s;
  if (differ != 1) return {};
  const double low = double(from[Size(which)]), high = double(to[Size(which)]),
               middle = std::sqrt(low * high);
  std::vector<Sizes> out;
  for (double size : {low * kAbove, middle, middle * kAbove}) {
    Sizes at = from;
    at[Size(which)] = std::min<int64_t>(std::llround(size), to[Size(which)]);
    out.push_back(at);
  }
  return out;
}

} // namespace

std::vector<Sizes> final_points(const Gemm& p) {
  const std::vector<Sizes> points = default_points(p);
  std::vector<Sizes> all;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i)
      for (const Sizes& between : between_points(points[i - 1], points[i]))
        if (between != all.back() && between != points[i]) all.push_back(between);
    all.push_back(points[i]);
  }
  return all;
}

} // namespace deepgen
