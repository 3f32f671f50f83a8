#include "runtime/cpu/split.h"

#include <initializer_list>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// A cut less fair than this much of another's is not worth the other's costs: blocks that end early, or more
/// packing.
constexpr double kClearly = 0.9;

/// Tiles of the longest of the parts that part() makes of one side. Its last unit may be short.
int64_t longest(int64_t tiles, int64_t step, int64_t parts) {
  if (parts == 1) return tiles;
  const int64_t units = ceil_div(tiles, step), most = ceil_div(units, parts), missing = units * step - tiles;
  if (units % parts != 1) return most * step; // the last part is not the only one with so many units
  const int64_t last = most * step - missing, others = (most - 1) * step;
  return last > others ? last : others;
}

/// Tiles of the largest task: what all the other threads wait for.
double span(const TileGrid& k, const Split& s) {
  return double(longest(k.tiles_m, s.step_m, s.parts_m)) * double(longest(k.tiles_n, s.step_n, s.parts_n)) *
         double(longest(k.tiles_b, 1, s.parts_b));
}

/// The cut into at most pm x pn x pb parts with the kernel's grain, or with single tiles where that is
/// clearly fairer.
Split cut(const TileGrid& k, int64_t pm, int64_t pn, int64_t pb) {
  Split coarse;
  coarse.parts_b = int(smaller(pb, k.tiles_b));
  coarse.step_m = k.grain_m, coarse.step_n = k.grain_n;
  coarse.parts_m = int(smaller(pm, ceil_div(k.tiles_m, k.grain_m)));
  coarse.parts_n = int(smaller(pn, ceil_div(k.tiles_n, k.grain_n)));
  Split fine;
  fine.parts_b = coarse.parts_b;
  fine.parts_m = int(smaller(pm, k.tiles_m));
  fine.parts_n = int(smaller(pn, k.tiles_n));
  return span(k, fine) < span(k, coarse) * kClearly ? fine : coarse;
}

struct Pair {
  int first, second;
};

void part(int64_t tiles, int64_t step, int parts, int index, int64_t& begin, int64_t& end) {
  const int64_t units = ceil_div(tiles, step);
  begin = smaller(units * index / parts * step, tiles);
  end = smaller(units * (index + 1) / parts * step, tiles);
}

/// As the kernel says. Along both sides the fairest of all ways, of equal ones that with the most rows.
Split as_tuned(const TileGrid& k, int threads) {
  if (k.cut == DEEPGEN_CUT_ROWS) return cut(k, threads, 1, 1);
  if (k.cut == DEEPGEN_CUT_COLUMNS) return cut(k, 1, threads, 1);
  Split best;
  for (int few = 2; few * few <= threads; ++few)
    for (auto [rows, columns] : {Pair{threads / few, few}, Pair{few, threads / few}}) {
      const Split other = cut(k, rows, columns, 1);
      if (span(k, other) < span(k, best)) best = other;
    }
  return best;
}

} // namespace

Split split_tiles(const TileGrid& k, int threads) {
  if (threads <= 1) return {};
  if (k.cut != DEEPGEN_CUT_RULE && k.tiles_b == 1)
    if (const Split tuned = as_tuned(k, threads); tuned.count() > 1) return tuned;
  Split best = k.tiles_b >= threads     ? cut(k, 1, 1, threads)
               : k.tiles_m >= k.tiles_n ? cut(k, threads, 1, 1)
                                        : cut(k, 1, threads, 1);
  double limit = span(k, best) * kClearly;
  if (limit * threads <= double(k.tiles_m) * double(k.tiles_n) * double(k.tiles_b))
    return best; // nothing is clearly fairer than this
  const auto try_cut = [&](int pm, int pn, int pb) {
    const Split other = cut(k, pm, pn, pb);
    if (span(k, other) < limit) best = other, limit = span(k, other);
  };
  for (int first = 1; first * first <= threads; ++first) {
    const int second = threads / first;
    try_cut(first, second, 1), try_cut(second, first, 1);
    if (k.tiles_b == 1) continue;
    for (auto [pb, rest] : {Pair{first, second}, Pair{second, first}})
      try_cut(rest, 1, pb), try_cut(1, rest, pb);
  }
  return best;
}

TileRange task_range(const TileGrid& k, const Split& s, int index) {
  TileRange r;
  part(k.tiles_n, s.step_n, s.parts_n, index % s.parts_n, r.n0, r.n1);
  index /= s.parts_n;
  part(k.tiles_m, s.step_m, s.parts_m, index % s.parts_m, r.m0, r.m1);
  part(k.tiles_b, 1, s.parts_b, index / s.parts_m, r.b0, r.b1);
  return r;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
