#include "measure/values/verify.h"

#include <algorithm>

namespace deepgen {
namespace {

/// [first, last) in up to three uneven parts: one alone, and the rest in two.
std::vector<std::pair<int64_t, int64_t>> parts(int64_t first, int64_t last) {
  if (last - first < 2) return {{first, last}};
  const int64_t middle = (first + 1 + last + 1) / 2;
  std::vector<std::pair<int64_t, int64_t>> out = {{first, first + 1}, {first + 1, middle}, {middle, last}};
  std::erase_if(out, [](auto& r) { return r.first >= r.second; });
  return out;
}

} // namespace

std::string SameOrder::add(const Kernel& kernel, const Verdict& verdict) {
  if (kernel.sum_order.empty() || verdict.row_bits.empty()) return "";
  const std::string problem = kernel.problem.key(), config = kernel.choice.text();
  for (const Seen& seen : seen_)
    if (seen.problem == problem && seen.order == kernel.sum_order && seen.bits != verdict.row_bits)
      return "a row's bits by " + config + " are others than those by " + seen.config +
             ", which adds up in the same order: " + seen.order;
  seen_.push_back({problem, kernel.sum_order, verdict.row_bits, config});
  return "";
}

std::vector<TileRanges> cut_ranges(const TileRanges& full, GridCut cut) {
  std::vector<TileRanges> ranges;
  switch (cut) {
  case GridCut::whole:
    ranges = {full};
    break;
  case GridCut::rows:
    for (auto [from, to] : parts(full.m0, full.m1))
      ranges.push_back({from, to, full.n0, full.n1, full.b0, full.b1});
    break;
  case GridCut::columns:
    for (auto [from, to] : parts(full.n0, full.n1))
      ranges.push_back({full.m0, full.m1, from, to, full.b0, full.b1});
    break;
  case GridCut::entries:
    for (auto [from, to] : parts(full.b0, full.b1))
      ranges.push_back({full.m0, full.m1, full.n0, full.n1, from, to});
    break;
  }
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

double call_limit(const Problem& p, double base) {
  constexpr double kSlowFlopsPerSecond = 10e9, kSlack = 20;
  return std::max(base, kSlack * p.flops() / kSlowFlopsPerSecond);
}

} // namespace deepgen
