// From the accumulators of mma_sync to D, or to the workspace of split-K.
#pragma once

#include "templates/gpu/gpu_gate.h"
#include "templates/nvidia/mma_sync/mma_sync.h"

namespace deepgen {

/// Where a block and a warp are. `entry` and `split` are null when there is one. n0 counts columns of D.
struct MmaPlace {
  Value memory; ///< shared, of the block
  Value m0, n0; ///< of the block's tile
  Value entry, split;
  Value warp_m, warp_n, warp_k;
  Value row_end;      ///< of the group; null without groups
  int64_t weight = 0; ///< whose sums they are, when splits of a gated problem are stored
};

/// With a gate, the sums are those of one weight, or products of gate and sum. The problem is then without
/// its gate.
class MmaStore {
public:
  MmaStore(NvIr&, const Gemm&, const MmaTiling&, const GpuIr::Arguments&, const MmaPlace&,
           const GatedSums& sums);
  void emit();

private:
  void store_by_warps();
  bool scales_at_once() const; ///< alpha, and beta with C, for all sums of a thread by one branch
  void scale(llvm::function_ref<Value(int64_t row_tile, int64_t half)> rows, const Values& columns);
  Values row_of_sums(int64_t row_tile, int64_t half, int64_t column_tile) const;
  void store_rows(llvm::ArrayRef<Fragment>);
  void stage_elements(Value to, llvm::ArrayRef<Fragment>);
  void copy_rows(Value from, Value first_row);

  void store_by_blocks();
  void stage_sums(int64_t pass);
  Values staged_sums(Value row, Value column);
  void store_pass(int64_t pass);

  int64_t m_tiles() const { return t.wm / 16; }
  int64_t n_tiles() const { return t.warp_columns / 8; }

  NvIr& ir;
  const Gemm& p;
  const MmaTiling& t;
  const GpuIr::Arguments& arguments;
  const MmaPlace at;
  const GatedSums sums;
  Values scaled; ///< as the epilogue's; empty: it does that with each row
  const Bounds bounds;
  GpuEpilogue epilogue;
};

} // namespace deepgen
