#include "measure/values/groups.h"

#include "measure/values/inputs.h"

#include <algorithm>
#include <numeric>

namespace deepgen {
namespace {

/// In [0, 1).
double chance(uint64_t seed, uint64_t index) { return (uniform(seed, index) + 1) / 2; }

std::vector<int64_t> even(const Gemm& p) {
  std::vector<int64_t> rows(size_t(p.groups), p.m / p.groups);
  for (int64_t g = 0; g < p.m % p.groups; ++g) ++rows[size_t(g)];
  return rows;
}

std::vector<int64_t> skewed(const Gemm& p, uint64_t seed) {
  const auto groups = size_t(p.groups);
  std::vector<size_t> order(groups);
  std::iota(order.begin(), order.end(), size_t(0));
  for (size_t i = groups; i > 1; --i) std::swap(order[i - 1], order[size_t(chance(seed, i) * double(i))]);
  std::vector<double> up_to(groups);
  double total = 0;
  for (size_t r = 0; r < groups; ++r) up_to[r] = total += 1 / double(r + 2);
  std::vector<int64_t> rows(groups, 0);
  for (int64_t i = 0; i < p.m; ++i) {
    const double x = chance(seed + 1, uint64_t(i)) * total;
    const auto r = size_t(std::upper_bound(up_to.begin(), up_to.end(), x) - up_to.begin());
    ++rows[order[std::min(r, groups - 1)]];
  }
  return rows;
}

/// `first`: rows before all groups.
std::vector<int64_t> sparse(const Gemm& p, uint64_t seed, int64_t& first) {
  std::vector<int64_t> rows(size_t(p.groups), 0);
  first = std::min<int64_t>(p.m - 1, 3);
  int64_t left = p.m - first - std::min<int64_t>(p.m - first - 1, 2);
  for (size_t g = size_t(p.groups > 1 ? seed % 2 : 0); g < rows.size() && left > 0; g += 2) {
    const int64_t share = 2 * p.m / p.groups;
    rows[g] = std::min(left, int64_t(chance(seed, g) * double(2 * share + 1)) | 1);
    left -= rows[g];
  }
  return rows;
}

} // namespace

std::vector<int32_t> group_offsets(const Gemm& p, Sharing sharing, uint64_t seed) {
  std::vector<int64_t> rows(size_t(p.groups), 0);
  int64_t first = 0;
  switch (sharing) {
  case Sharing::even:
    rows = even(p);
    break;
  case Sharing::skewed:
    rows = skewed(p, seed);
    break;
  case Sharing::one:
    rows[size_t(seed % uint64_t(p.groups))] = p.m;
    break;
  case Sharing::sparse:
    rows = sparse(p, seed, first);
    break;
  }
  std::vector<int32_t> offsets = {int32_t(first)};
  for (int64_t count : rows) offsets.push_back(offsets.back() + int32_t(count));
  return offsets;
}

} // namespace deepgen
