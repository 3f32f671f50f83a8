// Groups of rows on GPUs: which tiles of D there are is known when the kernel runs, from a table in memory.
#pragma once

#include "base/kernel/kernel.h"
#include "templates/ir/value.h"

namespace deepgen {

/// Tiles of D in the order of their groups, each group's own ones: a tile never has rows of two groups, and
/// is smaller at the end of a group. Groups without rows have no tiles. All values are i32.
class GpuGroups {
public:
  /// `tile_rows`: of D in a tile.
  GpuGroups(GpuIr&, const Gemm&, const KernelArguments&, int64_t tile_rows);

  /// What a warp knows of the 32 groups from 32 * `chunk` on, each lane of one: its rows, its tiles (rows of
  /// tiles), and how many the groups before it have, where those before the chunk have `tiles_before`.
  struct Lane {
    Value number, first_row, end_row, tiles, tiles_before;
  };
  Lane chunk(Value chunk, Value tiles_before);
  int64_t chunks() const;

  /// A group and where its tiles begin.
  struct Group {
    Value exists; ///< i1: there are as many tiles
    Value number, first_row, end_row, tiles, tiles_before;
  };
  Group group_of(Value row_of_tiles);         ///< by whole warps of 32 lanes
  Group group_one_by_one(Value row_of_tiles); ///< by any threads, of any GPU: for few groups as fast

  /// The arguments with those vectors of the epilogue that each group has for itself.
  KernelArguments of_group(Value number) const;

  /// Rows of tiles of `tile_rows` that all groups may have together.
  static int64_t most_tiles(const Gemm&, int64_t tile_rows);
  /// Of a grid with a block for each tile, which has no more blocks than that of the largest call: every tile
  /// has a row.
  static SizeRule grid_rule(const Gemm&, int64_t tile_rows, int64_t tile_columns);

private:
  Value offset(Value index) const; ///< of the table; the last one beyond it
  Value tiles_of(Value first_row, Value end_row) const;

  GpuIr& ir;
  const Gemm p;
  const KernelArguments arguments_;
  const int64_t tile_rows_;
};

} // namespace deepgen
