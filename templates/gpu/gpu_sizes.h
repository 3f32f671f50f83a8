// The sizes of a kernel's problem in its code: constants, and of ranges the arguments of the call.
#pragma once

#include "templates/ir/gpu_ir.h"

namespace deepgen {

struct GpuSizes {
  /// Made where it dominates all uses.
  GpuSizes(GpuIr& ir, const Gemm& p, const GpuIr::Arguments& arguments)
      : m(of(ir, p, arguments, Size::m)), n(of(ir, p, arguments, Size::n)), k(of(ir, p, arguments, Size::k)),
        batch(of(ir, p, arguments, Size::batch)) {}

  SizeValue m, n, k, batch;

private:
  static SizeValue of(GpuIr& ir, const Gemm& p, const GpuIr::Arguments& arguments, Size size) {
    if (!p.ranged(size)) return p.sizes()[size];
    return ir.to_i32(arguments.at(size_names[size_t(size)]));
  }
};

} // namespace deepgen
