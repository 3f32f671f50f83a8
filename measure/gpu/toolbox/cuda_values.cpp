#include "measure/gpu/toolbox/cuda_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

namespace deepgen::cuda {
namespace {

constexpr uint64_t kStreams = 32; ///< of random numbers that one seed has: of A, B, C and each step
static_assert(3 + epilogue_op_count <= kStreams);

/// Of scales that are one value, so that no two that follow each other are the same.
constexpr double kScales[] = {0.75, 1.25, 1.5, 0.625, 0.875};

} // namespace

Values values_of(const Gemm& p, Operand operand, uint64_t seed) {
  Values v;
  v.seed = kStreams * seed + uint64_t(operand);
  const bool input = operand == Operand::a || operand == Operand::b;
  if ((input && p.a == Type::i8) || (operand == Operand::c && p.d == Type::i8))
    v.centre = -0.5, v.amplitude = 127.5;
  else if (operand == Operand::c && p.d == Type::i32)
    v.amplitude = 1000;
  return v;
}

Values values_of(const Gemm& p, EpilogueOp op, uint64_t seed) {
  Values v;
  v.seed = kStreams * seed + 3 + uint64_t(op);
  const bool scale = to_string(op).starts_with("scale_");
  for (const deepgen::Operand& x : operands_of(op, p))
    if (x.shape == deepgen::Operand::Shape::value)
      v.centre = kScales[size_t(op) % std::size(kScales)], v.amplitude = 0;
    else if (scale || op == EpilogueOp::multiply)
      v.centre = 1, v.amplitude = 0.5;
  return v;
}

Array spread(Array x, const deepgen::Operand& operand) {
  x.type = int32_t(operand.type), x.rows = operand.rows, x.columns = operand.columns;
  if (operand.shape == deepgen::Operand::Shape::per_row)
    x.rows = operand.columns, x.columns = 1, x.ld = 1;
  else if (!operand.is_matrix())
    x.ld = 0;
  return x;
}

void add_step(EpilogueParameters& p, EpilogueOp op, const Array& operand) {
  p.steps[p.step_count] = int32_t(op);
  p.operands[p.step_count++] = operand;
}

Values rows_values(const std::string& operand, uint64_t seed) {
  Values v;
  const std::string names[] = {"x", "residual", "scale", "bias"};
  v.seed = 16 * seed + uint64_t(std::find(std::begin(names), std::end(names), operand) - std::begin(names));
  if (operand == "scale") v.centre = 1, v.amplitude = 0.5;
  return v;
}

Values attention_values(const std::string& operand, uint64_t seed) {
  Values v;
  const std::string names[] = {"q", "key", "value", "sink", "bias"};
  v.seed = 4 * seed + uint64_t(std::find(std::begin(names), std::end(names), operand) - std::begin(names));
  if (operand == "q") v.amplitude = 8;
  return v;
}

Scalars scalars_of(const Gemm& p) {
  Scalars s;
  const double root = std::sqrt(double(std::max<int64_t>(p.k, 1)));
  double typical = root / 3; // of a product's elements
  if (p.a == Type::i8) {
    typical = root * 128 * 128 / 3;
    if (p.d == Type::i8 && !p.gate)
      s.unit_alpha = std::exp2(std::floor(std::log2(40 / typical))), typical *= s.unit_alpha;
  }
  if (p.gate) { // sums where the gate is neither open nor shut
    s.unit_alpha = std::exp2(std::floor(std::log2((p.d == Type::i8 ? 8 : 2) / typical)));
    typical = std::pow(typical * s.unit_alpha, 2) / 2;
  }
  s.clamp_low = -std::exp2(std::floor(std::log2(typical)));
  s.clamp_high = -1.5 * s.clamp_low;
  return s;
}

} // namespace deepgen::cuda
