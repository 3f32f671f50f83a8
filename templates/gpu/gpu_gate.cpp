#include "templates/gpu/gpu_gate.h"

namespace deepgen {

GpuGate::GpuGate(GpuIr& ir, const Gemm& p, const GpuIr::Arguments& arguments)
    : ir_(ir), problem_(p), alpha_(arguments.at("alpha")) {}

Value GpuGate::product(Value gate, Value up) const {
  const mlir::Type type = ir_.memory_type(problem_.scale_type());
  auto scaled = [&](Value sum) { return ir_.mulf(alpha_, ir_.convert(type, sum)); };
  return ir_.mulf(gpu_function(ir_, problem_, *problem_.gate, scaled(gate)), scaled(up));
}

std::vector<Fragment> GpuGate::products(llvm::ArrayRef<Fragment> gate, llvm::ArrayRef<Fragment> up) const {
  std::vector<Fragment> out(gate.begin(), gate.end());
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t j = 0; j < out[i].values.size(); ++j)
      out[i].values[j] = product(gate[i].values[j], up[i].values[j]);
  return out;
}

Gemm GpuGate::rest(const Gemm& p) {
  Gemm out = p;
  out.gate.reset();
  if (p.gate) out.accumulate = p.scale_type();
  return out;
}

GpuIr::Arguments GpuGate::rest(const GpuIr::Arguments& arguments) const {
  GpuIr::Arguments out = arguments;
  out["alpha"] = ir_.number(alpha_.getType(), 1.0);
  return out;
}

} // namespace deepgen
