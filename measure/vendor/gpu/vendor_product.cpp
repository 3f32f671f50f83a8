#include "measure/vendor/gpu/vendor_product.h"

#include "measure/gpu/toolbox/cuda_values.h"

namespace deepgen::cuda {
namespace {

Type output_of(const Gemm& p, const VendorPlan& plan) {
  return plan.scratch && p.a == Type::i8 ? Type::i32 : p.d;
}

} // namespace

VendorProduct::VendorProduct(const Gemm& p, const VendorPlan& plan)
    : problem_(p), plan_(plan), output_(output_of(p, plan)), scale_type_(output_ == Type::i32 ? Type::i32
                                                                         : p.d == Type::f64   ? Type::f64
                                                                                              : Type::f32) {
  if (plan.scratch) scratch_ = Memory(size_t(p.m * p.sum_columns() * p.batch * size_of(output_)));
}

std::unique_ptr<VendorProduct> VendorProduct::make(const Gemm& p, const VendorPlan& plan,
                                                   const CallOperands& x) {
  return plan.library == VendorPlan::rocblas ? make_rocblas_product(p, plan, x) : make_lt_product(p, plan, x);
}

void VendorProduct::enqueue(const Vendor::Algorithm& algorithm, Address workspace, const CallOperands& x,
                            const Toolbox& tools, Stream stream) {
  multiply(algorithm, workspace, x, stream);
  if (plan_.separate() && !plan_.alone) tools.epilogue(product(x), x.d, rest(x));
}

Array VendorProduct::product(const CallOperands& x) const {
  if (!plan_.scratch) return x.d;
  const int64_t columns = problem_.sum_columns();
  Array out = shape_of(problem_.m, columns, columns, problem_.batch, 0);
  out.data = scratch_.address(), out.type = int32_t(output_);
  return out;
}

std::vector<VendorProduct::Part> VendorProduct::parts(const CallOperands& x) const {
  const Part all{x.b, product(x)};
  if (!plan_.halves) return {all};
  const int64_t n = problem_.n;
  Part gate = all;
  (problem_.b_transposed() ? gate.b.rows : gate.b.columns) = n, gate.product.columns = n;
  Part up = gate; // behind the gate's, in B and in the product
  up.b.data += uint64_t((problem_.b_transposed() ? n * all.b.ld : n) * size_of(problem_.b));
  up.product.data += uint64_t(n * size_of(output_));
  return {gate, up};
}

EpilogueParameters VendorProduct::rest(const CallOperands& x) const {
  EpilogueParameters e;
  e.alpha = unscaled() ? x.alpha : 1;
  if (plan_.gate) e.gate = int32_t(*plan_.gate);
  e.clamp_low = x.clamp_low, e.clamp_high = x.clamp_high;
  for (EpilogueOp op : plan_.rest) add_step(e, op, x.step(op));
  return e;
}

} // namespace deepgen::cuda
