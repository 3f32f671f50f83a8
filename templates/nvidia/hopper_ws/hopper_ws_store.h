// From the sums of a warpgroup to D, or to the workspace of split-K.
#pragma once

#include "templates/gpu/gpu_gate.h"
#include "templates/nvidia/hopper_ws/hopper_ws.h"

namespace deepgen {

/// A tile of D of one warpgroup. `entry` and `split` are null when there is one.
struct HopperPlace {
  Value memory; ///< i32: of the block
  Value m0, n0; ///< of the block's tile of D, or of its transpose
  Value entry, split;
  Value consumer;         ///< number of the warpgroup among the consumers
  Value group, row_end;   ///< of rows of D, and where it ends; null without groups
  int64_t weight = 0;     ///< whose sums they are, when splits of a gated problem are stored
  Value parity = nullptr; ///< of how many tiles the warpgroup has had; null where nothing is read
};

/// With a gate, the sums are those of one weight, or products of gate and sum, and the tiling is
/// of_products().
class HopperStore {
public:
  HopperStore(HopperIr&, const Gemm&, const HopperTiling&, const GpuIr::Arguments&, const HopperPlace&,
              const GatedSums& sums);
  void emit();
  /// Whether each pass works out its addresses anew. Else those of a row of a tile are kept for the next one,
  /// in registers that many sums do not leave.
  static bool forgets_addresses(const Gemm&, int64_t sums, bool swap);
  /// Has TMA bring what the first passes of the tile read. Once a tile, behind the emit() of the one before.
  void fetch();
  static void initialise(HopperIr&, const HopperTiling&, Value memory); ///< its barriers, by as many threads
  /// The sums as they are, to rows of `pitch` elements in shared memory at `to`; of a tile at (0, 0).
  void leave_sums(Value to, int64_t pitch);

private:
  /// Sums of 8 columns of wgmma's N, as one thread has them: (row, column), (row, column + 1), and 8 rows
  /// below.
  Values group(int64_t m_tile, int64_t column8) const;
  Value tile_row(int64_t m_tile) const; ///< the warp's first one
  std::vector<Fragment> fragments(int64_t m_tile, int64_t first8, int64_t count8) const;
  void store_partial_sums();
  void scale();
  void store_pass(int64_t m_tile, int64_t first8, int64_t count8, int64_t pass);
  void await_buffer(int64_t pass) const;
  void fetch(int64_t pass);
  void fetch_behind(int64_t pass);
  /// What was read into the buffer, for fragments of `count8` times 8 columns.
  void take(Value buffer, int64_t first8, int64_t count8, std::vector<Fragment>&) const;
  bool reads() const { return !t.staging.reads.empty(); }
  Value stager() const;
  Value buffer_of(int64_t pass) const;
  Value read_barrier(int64_t pass) const;
  int64_t columns8() const { return t.swap ? t.bn / 8 : t.staging.columns / 8; } ///< of wgmma's N, in a pass
  std::pair<int64_t, int64_t> place_of(int64_t pass) const; ///< m_tile and the first 8 columns
  /// Writes D's elements of `count8` times 8 columns of wgmma's N, from `first8` times 8 of the buffer on.
  void stage(Value buffer, mlir::ValueRange elements, int64_t first8, int64_t count8) const;
  void stage_matrices(Value buffer, mlir::ValueRange words, int64_t first8, int64_t count8) const;
  void stage_elements(Value buffer, mlir::ValueRange elements, int64_t first8, int64_t count8) const;
  /// Where a lane's row is of the one or two (`pair`) times 2 matrices of 8 x 8 that an instruction moves.
  Value matrix_row(Value buffer, int64_t column8, bool pair) const;
  /// Where a thread's element is: `half`, 8 rows of wgmma's M further on, and with swap `i`, a column of its
  /// N.
  Value element(Value buffer, int64_t column8, int64_t half, int64_t i) const;
  /// Where byte `byte` (i32) of a row of a buffer is: boxes follow each other.
  Value staged(Value buffer, Value row, Value byte) const;
  /// Whether all rows of D in a buffer are the group's.
  Value is_whole(int64_t m_tile) const;
  void copy_tile(Value buffer, int64_t m_tile, int64_t first8);
  /// Of the tensor maps of D and of what is read, innermost first.
  Values coordinates(int64_t m_tile, int64_t first8, int64_t box) const;
  void copy_rows(Value buffer, int64_t m_tile, int64_t first8);
  void synchronize() const;

  HopperIr& ir;
  const Gemm& p;
  const HopperTiling& t;
  const GpuIr::Arguments& arguments;
  const HopperPlace at;
  const GatedSums sums;
  Values scaled; ///< as the epilogue's; empty: it does that with each pass
  const Bounds bounds;
  Value thread, lane, warp, leader; ///< in the warpgroup; leader: i1, the thread that issues copies
  GpuEpilogue epilogue;
};

} // namespace deepgen
