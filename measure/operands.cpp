#include "measure/operands.h"

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
