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
  /// Which warp of the row's that is; i32.
  Value other_warp();

private:
  Value butterfly(Value x, int64_t lanes, Combine);

  GpuIr& ir;
  const GpuRowsTiling& t;
  const GpuRow& row_;
  const Value slots_;
  int64_t used_ = 0; ///< slots of each warp
};

} // namespace deepgen
