// GpuRowsThreads: what the threads that share a row tell each other. Those of one warp shuffle; warps meet at
// a barrier, which costs more than all shuffles, since each waits for the slowest: once is best.
#pragma once

#include "templates/gpu/rows/gpu_rows_source.h"

namespace deepgen {

class GpuRowsThreads {
public:
  /// `slots`: bytes in shared memory where this set's partial results begin.
  GpuRowsThreads(GpuIr&, const GpuRowsTiling&, const GpuRow&, Value slots);

  using Combine = Value (GpuIr::*)(Value, Value);

  /// Over the elements of a vector, or of a scalar: itself.
  Value fold(Value lanes, Combine);
  /// Over the row's threads in this warp; `x` may be a vector.
  Value in_warp(Value x, Combine);
  /// Over all of the row's threads.
  Value in_row(Value x, Combine);

  /// One barrier: of values that are the same in all lanes of a warp, lane i gets those of the row's warp
  /// i % warps.
  Values of_warps(const Values&);
  /// Over what of_warps() returned, or was made of it.
  Value over_warps(Value, Combine);
  /// Of the last of_warps(), the value of this index that the row's first warp has; f32.
  Value of_first_warp(int64_t index);
  /// Which warp of the row's lane i has; i32.
  Value other_warp();

private:
  Value butterfly(Value x, int64_t lanes, Combine);
  Value slot(int64_t index, Value warp);
  Value warp() { return ir.shift_right_bits(row_.thread, 5); }
  Value first_warp() { return ir.bit_and(warp(), ~(t.warps - 1)); }

  GpuIr& ir;
  const GpuRowsTiling& t;
  const GpuRow& row_;
  const Value slots_;
  int64_t first_ = 0, used_ = 0; ///< slots of each warp: those of the last of_warps(), and all
};

} // namespace deepgen
