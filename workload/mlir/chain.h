// Chain: a matrix product with what stands before and behind it and belongs to one call: the fill of its
// output, biases, residuals, activations, conversions.
#pragma once

#include "workload/mlir/product.h"

#include <set>

namespace deepgen::tensors {

/// A tensor that a call passes, as the field of deepgen_gemm_args of this name.
struct ChainOperand {
  std::string field; ///< "a", "bias", "residual", "d"
  int value = -1;    ///< Value; of d the result
};

/// What a call passes beside its tensors, by the name of the field: "alpha", "beta", "lda", "clamp_low".
using ChainNumbers = std::vector<std::pair<std::string, double>>;

struct Chain {
  Gemm gemm;
  int product = -1;                   ///< Operation
  int last = -1;                      ///< Operation whose result the call makes
  std::vector<int> operations;        ///< all that it takes the place of, in order
  std::vector<ChainOperand> operands; ///< inputs, then d
  ChainNumbers numbers;
  std::string ends; ///< why the next operation is none of it; empty: there is none, or it is something else
};

/// The longest chain behind a product, without operations of other chains. Refused when its output begins
/// with what is no number.
std::variant<Chain, Refused> chain_of(const Graph&, const Product&, const std::set<int>& taken);

} // namespace deepgen::tensors
