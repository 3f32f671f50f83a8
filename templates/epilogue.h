// Epilogues: what happens to a value between the accumulator and D, one vector at a time.
#pragma once

#include "templates/ir_builder.h"

namespace deepgen {

/// True when the epilogue is a handful of instructions that are worth emitting for every register of a tile;
/// gelu and silu are emitted once, in a loop over the rows of a finished tile.
bool is_cheap(const std::vector<EpilogueOp>&);

/// Applies the ops left to right. `bias` is the vector of bias values for x's columns (unused without a bias
/// op).
Value apply_epilogue(Ir&, const std::vector<EpilogueOp>&, Value x, Value bias);

/// Elementwise functions; docs/numerics.md has their accuracy and special values.
Value relu(Ir&, Value x); ///< NaN stays NaN
Value exp(Ir&, Value x);  ///< clamped to the range of normal numbers
Value gelu(Ir&, Value x); ///< x/2 * erfc(-x/sqrt(2)), the erf form
Value silu(Ir&, Value x); ///< x / (1 + exp(-x))

} // namespace deepgen
