#include "measure/values/operands.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

struct Place {
  EpilogueOp op;
  const void* CallBuffers::* data;
  int64_t CallBuffers::* ld;
  int64_t CallBuffers::* batch_stride;
};
constexpr Place kPlaces[] = {
    {EpilogueOp::bias, &CallBuffers::bias, nullptr, nullptr},
    {EpilogueOp::bias_row, &CallBuffers::bias_row, nullptr, nullptr},
    {EpilogueOp::residual, &CallBuffers::residual, &CallBuffers::ld_residual, &CallBuffers::stride_residual},
    {EpilogueOp::multiply, &CallBuffers::multiplier, &CallBuffers::ld_multiplier,
     &CallBuffers::stride_multiplier},
    {EpilogueOp::scale_a, &CallBuffers::scale_a, nullptr, nullptr},
    {EpilogueOp::scale_b, &CallBuffers::scale_b, nullptr, nullptr},
    {EpilogueOp::scale_row, &CallBuffers::scale_row, nullptr, nullptr},
    {EpilogueOp::scale_col, &CallBuffers::scale_col, nullptr, nullptr},
    {EpilogueOp::scale_d, &CallBuffers::scale_d, nullptr, nullptr},
};

} // namespace

SlotValues values_of(const CallBuffers& x, const Gemm& p) {
  const Type type = p.scale_type();
  SlotValues values = {};
  values[DEEPGEN_ARG_A] = argument(x.a);
  values[DEEPGEN_ARG_B] = argument(x.b);
  values[DEEPGEN_ARG_C] = argument(x.c);
  values[DEEPGEN_ARG_D] = argument(x.d);
  values[DEEPGEN_ARG_BIAS] = argument(x.bias);
  values[DEEPGEN_ARG_LDA] = uint64_t(x.lda);
  values[DEEPGEN_ARG_LDB] = uint64_t(x.ldb);
  values[DEEPGEN_ARG_LDC] = uint64_t(x.ldc);
  values[DEEPGEN_ARG_LDD] = uint64_t(x.ldd);
  values[DEEPGEN_ARG_STRIDE_A] = uint64_t(x.stride_a);
  values[DEEPGEN_ARG_STRIDE_B] = uint64_t(x.stride_b);
  values[DEEPGEN_ARG_STRIDE_C] = uint64_t(x.stride_c);
  values[DEEPGEN_ARG_STRIDE_D] = uint64_t(x.stride_d);
  values[DEEPGEN_ARG_ALPHA] = argument(x.alpha, type);
  values[DEEPGEN_ARG_BETA] = argument(x.beta, type);
  values[DEEPGEN_ARG_WORKSPACE] = argument(x.workspace);
  values[DEEPGEN_ARG_BIAS_ROW] = argument(x.bias_row);
  values[DEEPGEN_ARG_RESIDUAL] = argument(x.residual);
  values[DEEPGEN_ARG_LD_RESIDUAL] = uint64_t(x.ld_residual);
  values[DEEPGEN_ARG_STRIDE_RESIDUAL] = uint64_t(x.stride_residual);
  values[DEEPGEN_ARG_MULTIPLIER] = argument(x.multiplier);
  values[DEEPGEN_ARG_LD_MULTIPLIER] = uint64_t(x.ld_multiplier);
  values[DEEPGEN_ARG_STRIDE_MULTIPLIER] = uint64_t(x.stride_multiplier);
  values[DEEPGEN_ARG_SCALE_A] = argument(x.scale_a);
  values[DEEPGEN_ARG_SCALE_B] = argument(x.scale_b);
  values[DEEPGEN_ARG_SCALE_D] = argument(x.scale_d);
  values[DEEPGEN_ARG_SCALE_ROW] = argument(x.scale_row);
  values[DEEPGEN_ARG_SCALE_COL] = argument(x.scale_col);
  values[DEEPGEN_ARG_CLAMP_LOW] = argument(x.clamp_low, type);
  values[DEEPGEN_ARG_CLAMP_HIGH] = argument(x.clamp_high, type);
  return values;
}

int64_t StepOperand::index(int64_t entry, int64_t m, int64_t n) const {
  switch (shape) {
  case Shape::per_column:
    return n;
  case Shape::per_row:
    return m;
  case Shape::matrix:
    return (entry * rows + m) * columns + n;
  case Shape::value:
    break;
  }
  return 0;
}

std::vector<StepOperand> operands_of(const Gemm& p) {
  std::vector<StepOperand> out;
  for (EpilogueOp op : p.epilogue)
    for (const Place& place : kPlaces)
      if (place.op == op) out.push_back({*operand_of(op, p), op, place.data, place.ld, place.batch_stride});
  return out;
}

double apply_step(EpilogueOp op, double x, double y, double low, double high) {
  switch (op) {
  case EpilogueOp::bias:
  case EpilogueOp::bias_row:
  case EpilogueOp::residual:
    return x + y;
  case EpilogueOp::multiply:
  case EpilogueOp::scale_a:
  case EpilogueOp::scale_b:
  case EpilogueOp::scale_row:
  case EpilogueOp::scale_col:
  case EpilogueOp::scale_d:
    return x * y;
  case EpilogueOp::relu:
    return std::max(x, 0.0);
  case EpilogueOp::gelu:
    return 0.5 * x * std::erfc(-x * M_SQRT1_2);
  case EpilogueOp::gelu_tanh: // x/2 (1 + tanh(u)) without cancellation
    return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case EpilogueOp::silu:
    return x / (1 + std::exp(-x));
  case EpilogueOp::sigmoid:
    return 1 / (1 + std::exp(-x));
  case EpilogueOp::clamp:
    return std::min(std::max(x, low), high);
  }
  return x;
}

} // namespace deepgen
