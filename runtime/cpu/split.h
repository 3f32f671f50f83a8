// How one call is cut into tasks for threads. Internal.
#pragma once

#include "runtime/core/abi.h"

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// Of calls with less work, handing it out costs more than it saves.
constexpr double kSerialFlops = 4e6;

/// What is split.
struct TileGrid {
  TileGrid(const deepgen_kernel& k) // implicit: that of the largest call
      : tiles_m(k.tiles_m), tiles_n(k.tiles_n), tiles_b(k.tiles_b), grain_m(k.grain_m), grain_n(k.grain_n),
        cut(k.cut) {}
  int64_t tiles_m, tiles_n, tiles_b, grain_m, grain_n;
  uint32_t cut; ///< DEEPGEN_CUT_...
};

/// Tiles [m0, m1) x [n0, n1) of the batch entries [b0, b1).
struct TileRange {
  int64_t m0 = 0, m1 = 0, n0 = 0, n1 = 0, b0 = 0, b1 = 0;
};

/// parts_m x parts_n x parts_b tasks, none empty; cuts along M and N fall on multiples of the steps, in
/// tiles.
struct Split {
  int parts_m = 1, parts_n = 1, parts_b = 1;
  int64_t step_m = 1, step_n = 1;
  int count() const { return parts_m * parts_n * parts_b; }
};

/// At most `threads` tasks. Whole batch entries when there are enough; else the longer side of the grid in
/// multiples of the kernel's grain. In single tiles where that makes the largest task smaller by more than a
/// tenth; and two of M, N and the batch where one shares out unevenly (such cuts pack more, so they must win
/// by as much). A kernel that was tuned for another cut of a product without a batch has that one, as far as
/// it makes more than one task.
Split split_tiles(const TileGrid& grid, int threads);

/// The tiles of task `index` in [0, split.count()).
TileRange task_range(const TileGrid& grid, const Split& split, int index);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
