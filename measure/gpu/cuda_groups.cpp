#include "measure/gpu/cuda_groups.h"

namespace deepgen::cuda {

void take_rows(Array& x, int64_t row, int64_t rows) {
  if (!x.data) return;
  x.data += uint64_t(row * x.ld * size_of(Type(x.type))), x.rows = rows;
}

Gemm group_problem(const Gemm& p, int64_t rows) {
  Gemm out = p;
  out.m = rows, out.groups = 0;
  return out;
}

CallOperands group_operands(const Gemm& p, const CallOperands& x, int64_t group, int64_t row, int64_t rows) {
  CallOperands out = x;
  out.offsets = 0, out.in_groups.clear();
  for (Array* matrix : {&out.a, &out.c, &out.d, &out.residual, &out.multiplier})
    take_rows(*matrix, row, rows);
  out.b.data += uint64_t(group * out.b.stride * size_of(p.b)), out.b.batch = 1, out.b.stride = 0;
  const auto vector = uint64_t(size_of(p.epilogue_type())), scale = uint64_t(size_of(p.scale_type()));
  if (out.bias) out.bias += uint64_t(group * p.n) * vector;
  if (out.scale_col) out.scale_col += uint64_t(group * p.n) * scale;
  if (out.bias_row) out.bias_row += uint64_t(row) * vector;
  if (out.scale_row) out.scale_row += uint64_t(row) * scale;
  return out;
}

} // namespace deepgen::cuda
