// The sizes of a kernel's problem in its code: constants, and of ranges the arguments of the call.
#pragma once

#include "base/problem/gemm.h"
#include "templates/ir/size_value.h"
#include "templates/ir/value.h"

namespace deepgen {

struct GpuSizes {
  /// Made where it dominates all uses.
  GpuSizes(GpuIr&, const Gemm&, const KernelArguments&);

  SizeValue m, n, k, batch;
};

} // namespace deepgen
