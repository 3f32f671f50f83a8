// Product: an operation of linalg that is a matrix product, with what of its loops is M, N, K and the batch.
#pragma once

#include "base/problem/gemm.h"
#include "workload/mlir/graph.h"

#include <optional>
#include <variant>

namespace deepgen::tensors {

/// How a matrix lies in memory, in elements. 0 as in deepgen_gemm_args: dense.
struct Placed {
  bool transposed = false;
  int64_t ld = 0, stride = 0; ///< stride may be DEEPGEN_BROADCAST, -1
};

struct Product {
  int operation = -1;
  Gemm gemm;          ///< without an epilogue; D has the type of the sums
  int a = -1, b = -1; ///< Values
  Placed place_a, place_b, place_d;
  std::vector<int> rows, columns, batch; ///< loops, outermost first
  Map d_map;                             ///< of the result: for each dimension the loop
};

/// Why an operation that has the loops of a matrix product is none that DeepGen computes.
struct Refused {
  std::string why, remedy;
};

/// Nothing: it is something else altogether.
using Match = std::variant<std::monostate, Product, Refused>;
Match match_product(const Graph&, int operation);

/// DeepGen's name for an element type of MLIR; nothing when there is none.
std::optional<Type> type_of(const std::string& element);

/// The dense stride of each dimension, in elements.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape);

} // namespace deepgen::tensors
