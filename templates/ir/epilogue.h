// Epilogues: what happens to a value between the accumulator and D. Values are scalars or vectors of f32 or
// f64, so that kernels for any arch share them.
#pragma once

#include "base/problem/gemm.h"
#include "templates/ir/value.h"

#include <functional>

namespace deepgen {

/// What an operand of an epilogue has for the element [m, n] of D.
enum class OperandShape {
  column, ///< one value for each n
  row,    ///< one value for each m
  matrix, ///< one value for each element, with a leading dimension and a batch stride
  single, ///< one value, in memory
  value   ///< one value, in the argument block
};

struct EpilogueOperand {
  const char* name; ///< of its argument slot (kernel_abi.h)
  OperandShape shape;
};
/// The operands of a step: none for functions, two for clamp, else one.
std::vector<EpilogueOperand> operands_of(EpilogueOp);
/// Whether a step has one of that shape.
bool has_operand(const std::vector<EpilogueOp>&, OperandShape);
/// The argument slots of all operands of an epilogue, in kernel_abi.h's order. With `strides`, the matrices'
/// leading dimensions are followed by their batch strides.
std::vector<std::string> epilogue_args(const std::vector<EpilogueOp>&, bool strides);

/// True when the epilogue is a handful of instructions that are worth emitting for every register of a tile;
/// steps with an exponential are emitted once, in a loop over the rows of a finished tile.
bool is_cheap(const std::vector<EpilogueOp>&);

/// As a step or as the gate: the erf form.
bool has_gelu(const Gemm&);

/// Applies the ops left to right. `operand` gives the values of an operand for x's elements, of x's type; it
/// is asked once for each operand, in the order of the ops.
using OperandValue = std::function<Value(const EpilogueOperand&)>;
Value apply_epilogue(Ir&, const std::vector<EpilogueOp>&, Value x, const OperandValue& operand);

/// Elementwise functions; docs/numerics.md has their accuracy and special values.
Value relu(Ir&, Value x);                         ///< NaN stays NaN
Value clamp(Ir&, Value x, Value low, Value high); ///< min(max(x, low), high); NaN stays NaN
Value exp(Ir&, Value x);     ///< clamped to the range of normal numbers; of NaN: any value
Value sigmoid(Ir&, Value x); ///< 1 / (1 + exp(-x))
Value silu(Ir&, Value x);    ///< x / (1 + exp(-x))
Value gelu(Ir&, Value x);    ///< x/2 * erfc(-x/sqrt(2)), the erf form
/// x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), computed as x / (1 + exp(-2u)).
Value gelu_tanh(Ir&, Value x);

} // namespace deepgen
