#include "measure/operands.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr Operand kOperands[] = {
    {EpilogueOp::bias, "bias", Operand::column, &CallBuffers::bias, nullptr, nullptr},
    {EpilogueOp::bias_row, "bias_row", Operand::row, &CallBuffers::bias_row, nullptr, nullptr},
    {EpilogueOp::residual, "residual", Operand::matrix, &CallBuffers::residual, &CallBuffers::ld_residual,
     &CallBuffers::stride_residual},
    {EpilogueOp::multiply, "multiplier", Operand::matrix, &CallBuffers::multiplier,
     &CallBuffers::ld_multiplier, &CallBuffers::stride_multiplier},
    {EpilogueOp::scale_a, "scale_a", Operand::single, &CallBuffers::scale_a, nullptr, nullptr},
    {EpilogueOp::scale_b, "scale_b", Operand::single, &CallBuffers::scale_b, nullptr, nullptr},
    {EpilogueOp::scale_row, "scale_row", Operand::row, &CallBuffers::scale_row, nullptr, nullptr},
    {EpilogueOp::scale_col, "scale_col", Operand::column, &CallBuffers::scale_col, nullptr, nullptr},
    {EpilogueOp::scale_d, "scale_d", Operand::single, &CallBuffers::scale_d, nullptr, nullptr},
};

} // namespace

int64_t Operand::rows(const Problem& p) const { return shape == Operand::matrix ? p.m : 1; }

int64_t Operand::columns(const Problem& p) const {
  return shape == Operand::single ? 1 : shape == Operand::row ? p.m : p.n;
}

int64_t Operand::count(const Problem& p) const {
  return rows(p) * columns(p) * (shape == Operand::matrix ? p.batch : 1);
}

int64_t Operand::index(const Problem& p, int64_t entry, int64_t m, int64_t n) const {
  switch (shape) {
  case Operand::column:
    return n;
  case Operand::row:
    return m;
  case Operand::matrix:
    return (entry * p.m + m) * p.n + n;
  case Operand::single:
    break;
  }
  return 0;
}

std::vector<Operand> operands_of(const Problem& p) {
  std::vector<Operand> out;
  for (EpilogueOp op : p.epilogue)
    for (const Operand& operand : kOperands)
      if (operand.op == op) out.push_back(operand);
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
