#include "runtime/split.h"

#include <initializer_list>

namespace deepgen::inline DEEPGEN_ABI_NAMESPACE {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// Tiles of the largest task: what all the other threads wait for.
double span(const deepgen_kernel& k, const Split& s) {
  const int64_t m = ceil_div(ceil_div(k.tiles_m, s.step_m), s.parts_m) * s.step_m;
  const int64_t n = ceil_div(ceil_div(k.tiles_n, s.step_n), s.parts_n) * s.step_n;
  return double(smaller(m, k.tiles_m)) * double(smaller(n, k.tiles_n));
}

/// The cut into at most pm x pn parts with the kernel's grain, or with single tiles where that shares out
/// better.
Split cut(const deepgen_kernel& k, int64_t pm, int64_t pn) {
  Split coarse;
  coarse.step_m = k.grain_m, coarse.step_n = k.grain_n;
  coarse.parts_m = int(smaller(pm, ceil_div(k.tiles_m, k.grain_m)));
  coarse.parts_n = int(smaller(pn, ceil_div(k.tiles_n, k.grain_n)));
  if (coarse.parts_m == pm && coarse.parts_n == pn)
    return coarse;
  Split fine;
  fine.parts_m = int(smaller(pm, k.tiles_m));
  fine.parts_n = int(smaller(pn, k.tiles_n));
  return span(k, fine) < span(k, coarse) ? fine : coarse;
}

void part(int64_t tiles, int64_t step, int parts, int index, int64_t& begin, int64_t& end) {
  const int64_t units = ceil_div(tiles, step);
  begin = smaller(units * index / parts * step, tiles);
  end = smaller(units * (index + 1) / parts * step, tiles);
}

} // namespace

Split split_tiles(const deepgen_kernel& k, int threads) {
  Split best;
  if (threads <= 1)
    return best;
  if (k.tiles_b >= threads) {
    best.parts_b = threads;
    return best;
  }
  best = k.tiles_m >= k.tiles_n ? cut(k, threads, 1) : cut(k, 1, threads);
  constexpr double kClearly = 0.9;
  double limit = span(k, best) * kClearly;
  for (int first = 2; first * first <= threads; ++first) {
    const int second = threads / first;
    for (const Split& two_sided : {cut(k, first, second), cut(k, second, first)})
      if (span(k, two_sided) < limit)
        best = two_sided, limit = span(k, two_sided);
  }
  return best;
}

TileRange task_range(const deepgen_kernel& k, const Split& s, int index) {
  TileRange r;
  part(k.tiles_n, s.step_n, s.parts_n, index % s.parts_n, r.n0, r.n1);
  index /= s.parts_n;
  part(k.tiles_m, s.step_m, s.parts_m, index % s.parts_m, r.m0, r.m1);
  part(k.tiles_b, 1, s.parts_b, index / s.parts_m, r.b0, r.b1);
  return r;
}

} // namespace deepgen
