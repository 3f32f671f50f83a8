#include "measure/values/invariant_rows.h"

#include "base/text/sha256.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace deepgen {
namespace {

/// Below, at and above what tiles have of rows.
constexpr int64_t kRows[] = {1, 2, 7, 33, 130};

int64_t middle(int64_t least, int64_t most) {
  return std::clamp(int64_t(std::sqrt(double(least) * double(most))) | 1, least, most);
}

/// The ranges but that of M at their most, or in their middle; none longer than it may be.
Sizes others(const Gemm& p, bool most, double most_flops) {
  Sizes sizes = p.sizes();
  if (p.ranged(Size::m)) sizes.m = std::max<int64_t>(1, *p.least[size_t(Size::m)]);
  for (Size size : {Size::n, Size::k, Size::batch}) {
    if (!p.ranged(size)) continue;
    const int64_t least = std::max<int64_t>(1, *p.least[size_t(size)]);
    if (!most) sizes[size] = middle(least, sizes[size]);
    while (p.at(sizes).flops() > most_flops && sizes[size] > least)
      sizes[size] = std::max(least, sizes[size] / 2 | 1);
  }
  return sizes;
}

InvariantCalls calls_of(const Gemm& p, Sizes sizes, double most_flops) {
  InvariantCalls out;
  const int64_t least = sizes.m, most = p.m;
  std::vector<int64_t> rows(std::begin(kRows), std::end(kRows));
  rows.insert(rows.end(), {least, middle(least, most), most});
  if (!p.ranged(Size::m)) rows = {most};
  for (int64_t m : rows) {
    sizes.m = std::clamp(m, least, most);
    while (sizes.m > least && p.at(sizes).flops() > most_flops) sizes.m = std::max(least, sizes.m / 2 | 1);
    if (p.at(sizes).flops() > most_flops) continue;
    if (std::find(out.calls.begin(), out.calls.end(), sizes) == out.calls.end()) out.calls.push_back(sizes);
    for (int64_t place : {int64_t(0), sizes.m / 3, sizes.m / 2, 7 * sizes.m / 11, sizes.m - 1})
      out.places.push_back(place);
  }
  std::sort(out.calls.begin(), out.calls.end(), [](const Sizes& x, const Sizes& y) { return x.m < y.m; });
  std::sort(out.places.begin(), out.places.end());
  out.places.erase(std::unique(out.places.begin(), out.places.end()), out.places.end());
  return out;
}

std::string text(const Sizes& x, int64_t place) {
  return "row " + std::to_string(place) + " of m=" + std::to_string(x.m) + " n=" + std::to_string(x.n) +
         " k=" + std::to_string(x.k) + " batch=" + std::to_string(x.batch);
}

} // namespace

std::vector<InvariantCalls> invariant_calls(const Gemm& p, double most_flops) {
  std::vector<InvariantCalls> all;
  std::vector<Sizes> known;
  for (bool most : {true, false}) {
    const Sizes sizes = others(p, most, most_flops);
    if (std::find(known.begin(), known.end(), sizes) != known.end()) continue;
    known.push_back(sizes);
    InvariantCalls calls = calls_of(p, sizes, most_flops);
    if (!calls.calls.empty()) all.push_back(std::move(calls));
  }
  return all;
}

void repeat_row(char* matrix, const std::vector<int64_t>& places, int64_t columns, int64_t bytes,
                int64_t row_pitch, int64_t column_pitch) {
  for (int64_t place : places)
    for (int64_t c = 0; place && c < columns; ++c)
      std::memcpy(matrix + place * row_pitch + c * column_pitch, matrix + c * column_pitch, size_t(bytes));
}

std::string EqualRows::add(const std::string& what, const Sizes& call, int64_t place, const char* row,
                           int64_t bytes, int64_t element) {
  if (first_.empty()) {
    first_.assign(row, size_t(bytes)), first_name_ = text(call, place) + " (" + what + ")";
    all_ += first_;
    return "";
  }
  const auto difference = std::mismatch(first_.begin(), first_.end(), row).first - first_.begin();
  if (difference == bytes) return "";
  return text(call, place) + " (" + what + ") has other bits than " + first_name_ + ", first in column " +
         std::to_string(difference / element);
}

void EqualRows::next() { first_.clear(); }

std::string EqualRows::hash() const { return sha256_hex(all_).substr(0, 32); }

} // namespace deepgen
