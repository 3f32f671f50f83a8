#include "templates/gpu/gpu_sizes.h"

#include "templates/ir/gpu_ir.h"

namespace deepgen {
namespace {

SizeValue size_of_call(GpuIr& ir, const Gemm& p, const KernelArguments& arguments, Size size) {
  if (!p.ranged(size)) return p.sizes()[size];
  return ir.to_i32(arguments.at(size_names[size_t(size)]));
}

} // namespace

GpuSizes::GpuSizes(GpuIr& ir, const Gemm& p, const KernelArguments& arguments)
    : m(size_of_call(ir, p, arguments, Size::m)), n(size_of_call(ir, p, arguments, Size::n)),
      k(size_of_call(ir, p, arguments, Size::k)), batch(size_of_call(ir, p, arguments, Size::batch)) {}

} // namespace deepgen
