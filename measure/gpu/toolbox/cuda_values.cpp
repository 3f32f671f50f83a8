#include "measure/gpu/toolbox/cuda_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

namespace deepgen::cuda {

Values values_of(const Gemm& p, Operand operand, uint64_t seed) {
  Values v;
  v.seed = 16 * seed + uint64_t(operand);
  const bool input = operand == Operand::a || operand == Operand::b;
  if (operand == Operand::scale_row || operand == Operand::scale_col || operand == Operand::multiplier)
    v.centre = 1, v.amplitude = 0.5;
  else if ((input && p.a == Type::i8) || (operand == Operand::c && p.d == Type::i8))
    v.centre = -0.5, v.amplitude = 127.5;
  else if (operand == Operand::c && p.d == Type::i32)
    v.amplitude = 1000;
  return v;
}

Values rows_values(const std::string& operand, uint64_t seed) {
  Values v;
  const std::string names[] = {"x", "residual", "scale", "bias"};
  v.seed = 16 * seed + uint64_t(std::find(std::begin(names), std::end(names), operand) - std::begin(names));
  if (operand == "scale") v.centre = 1, v.amplitude = 0.5;
  return v;
}

Scalars scalars_of(const Gemm& p) {
  Scalars s;
  const double root = std::sqrt(double(p.k));
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
