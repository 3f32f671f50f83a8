#include "measure/values/operands.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string_view>

namespace deepgen {
namespace {

constexpr std::array<std::string_view, DEEPGEN_ARG_COUNT> kSlots = {DEEPGEN_ARG_NAMES};

/// DEEPGEN_ARG_COUNT: none of this name.
size_t slot_of(std::string_view name) {
  return size_t(std::find(kSlots.begin(), kSlots.end(), name) - kSlots.begin());
}

} // namespace

SlotValues values_of(const CallBuffers& x, const Gemm& p) {
  const Type type = p.scale_type();
  SlotValues values = {};
  values[DEEPGEN_ARG_A] = argument(x.a);
  values[DEEPGEN_ARG_B] = argument(p.packed_b ? x.packed_b : x.b);
  values[DEEPGEN_ARG_C] = argument(x.c);
  values[DEEPGEN_ARG_D] = argument(x.d);
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
  for (const StepOperand& operand : operands_of(p)) {
    const CallBuffers::Step& step = x.step(operand.op);
    values.at(slot_of(operand.name)) = argument(step.data);
    if (!operand.is_matrix()) continue;
    values.at(slot_of(operand.leading_dimension())) = uint64_t(step.ld);
    values.at(slot_of(operand.stride())) = uint64_t(step.stride);
  }
  values[DEEPGEN_ARG_CLAMP_LOW] = argument(x.clamp_low, type);
  values[DEEPGEN_ARG_CLAMP_HIGH] = argument(x.clamp_high, type);
  for (size_t i = 0; i < size_count; ++i) values.at(slot_of(size_names[i])) = uint64_t(p.sizes()[Size(i)]);
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
    for (const Operand& operand : operands_of(op, p))
      if (operand.in_memory()) out.push_back({operand, op});
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
  case EpilogueOp::prelu:
    return x > 0 ? x : x * y;
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

Type computes_in(const Gemm& p) { return p.d == Type::f64 ? Type::f64 : Type::f32; }

double unit_roundoff(Type type) { return type == Type::f32 ? 0x1p-24 : 0x1p-53; }
double smallest_normal(Type type) { return type == Type::f32 ? double(FLT_MIN) : DBL_MIN; }

// From a value x with the tolerance t, and y the operand:
//   bias, bias_row, residual t + 2 u (|x| + |y|), y the operand
//   multiply, scales         |y| t + 2 u |x y|
//   relu, clamp              t
//   prelu                    max(1, |y|) t + 2 u |result|, as x may be on either side of 0
//   gelu, gelu_tanh          1.13 t + 16 u |x|, the steepest slope and the function's own error
//   silu                     1.1 t + 16 u |x|
//   sigmoid                  t / 4 + 16 u sigmoid(x)
double tolerance_after(EpilogueOp op, Type type, double x, double y, double result, double tolerance) {
  constexpr double kFunction = 16; // u
  const double u = unit_roundoff(type), tiny = smallest_normal(type);
  switch (op) {
  case EpilogueOp::bias:
  case EpilogueOp::bias_row:
  case EpilogueOp::residual:
    return tolerance + 2 * u * (std::fabs(x) + std::fabs(y));
  case EpilogueOp::multiply:
  case EpilogueOp::scale_a:
  case EpilogueOp::scale_b:
  case EpilogueOp::scale_row:
  case EpilogueOp::scale_col:
  case EpilogueOp::scale_d:
    return std::fabs(y) * tolerance + 2 * u * std::fabs(result) + tiny;
  case EpilogueOp::relu:
  case EpilogueOp::clamp:
    return tolerance;
  case EpilogueOp::prelu:
    return std::max(1.0, std::fabs(y)) * tolerance + 2 * u * std::fabs(result) + tiny;
  case EpilogueOp::gelu:
  case EpilogueOp::gelu_tanh:
    return 1.13 * tolerance + kFunction * u * std::fabs(x) + tiny;
  case EpilogueOp::silu:
    return 1.1 * tolerance + kFunction * u * std::fabs(x) + tiny;
  case EpilogueOp::sigmoid:
    return 0.25 * tolerance + kFunction * u * result + tiny;
  }
  return tolerance;
}

bool is_scale(EpilogueOp op) { return to_string(op).starts_with("scale_"); }

} // namespace deepgen
