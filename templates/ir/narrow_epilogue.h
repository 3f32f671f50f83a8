// Steps of epilogues for results of 16 and 8 bits: what their rounding hides is not computed.
#pragma once

#include "templates/ir/ir_builder.h"

namespace deepgen {

/// Whether narrow_function() has the step.
bool has_narrow_function(EpilogueOp);
/// A step without operands of f32, whose result is rounded to at most 16 bits: gelu, gelu_tanh, silu,
/// sigmoid. docs/numerics.md has its error; NaN, infinities and large values give what the functions of f32
/// give.
Value narrow_function(Ir&, EpilogueOp, Value x);

} // namespace deepgen
