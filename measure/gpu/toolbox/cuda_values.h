// Which values a verified or timed call computes with.
#pragma once

#include "base/problem/signature.h"
#include "measure/gpu/toolbox/cuda_parameters.h"

namespace deepgen::cuda {

enum class Operand { a, b, c };

/// Distribution of an operand's elements: floats U[-1, 1); i8 inputs their whole range; vectors of scales
/// around 1, and what is multiplied; of the scales that are one value, that.
Values values_of(const Gemm&, Operand, uint64_t seed);
Values values_of(const Gemm&, EpilogueOp, uint64_t seed);

/// An operand of a step as EpilogueParameters has it: one that lies in memory as the signature says.
Array spread(Array, const deepgen::Operand&);
/// Appends a step, with its operand if it has one.
void add_step(EpilogueParameters&, EpilogueOp, const Array& operand);

/// Scalars that keep results in the middle of D's range. Representable in every type.
struct Scalars {
  double unit_alpha = 1; ///< stands for 1: other for i8 outputs, whose sums would saturate, and for gates
  double clamp_low = 0, clamp_high = 0;
};
Scalars scalars_of(const Gemm&);

/// Of an operand of rows, by its name in the signature: floats U[-1, 1), scales around 1.
Values rows_values(const std::string& operand, uint64_t seed);
constexpr double rows_epsilon = 0x1p-17; ///< about 1e-5, and the same in f32

/// Of an operand of attention: U[-1, 1), of Q eight times as far, so that some keys outweigh others.
Values attention_values(const std::string& operand, uint64_t seed);

} // namespace deepgen::cuda
