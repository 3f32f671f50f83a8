#include "measure/gpu/cuda_groups.h"

#include "base/problem/signature.h"

namespace deepgen::cuda {

void take_rows(Array& x, int64_t row, int64_t rows) {
  if (!x.data) return;
  x.data += uint64_t(row * x.ld * size_of(Type(x.type))), x.rows = rows;
}

void take_group(Array& x, EpilogueOp op, const Gemm& p, int64_t group, int64_t row, int64_t rows) {
  for (const deepgen::Operand& operand : operands_of(op, p))
    if (operand.shape == deepgen::Operand::Shape::per_column) {
      if (x.data) x.data += uint64_t(group * p.n * size_of(operand.type));
    } else if (operand.in_memory()) {
      take_rows(x, row, rows);
    }
}

Gemm group_problem(const Gemm& p, int64_t rows) {
  Gemm out = p;
  out.m = rows, out.groups = 0;
  return out;
}

CallOperands group_operands(const Gemm& p, const CallOperands& x, int64_t group, int64_t row, int64_t rows) {
  CallOperands out = x;
  out.offsets = 0, out.in_groups.clear();
  for (Array* matrix : {&out.a, &out.c, &out.d}) take_rows(*matrix, row, rows);
  out.b.data += uint64_t(group * out.b.stride * size_of(p.b)), out.b.batch = 1, out.b.stride = 0;
  for (EpilogueOp op : p.epilogue) take_group(out.step(op), op, p, group, row, rows);
  return out;
}

} // namespace deepgen::cuda
