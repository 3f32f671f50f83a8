// Formula: what is computed for one element of a tensor, as a graph of scalar operations. No MLIR: the reader
// makes formulas of bodies, and the search for epilogues takes them apart.
#pragma once

#include "base/problem/epilogue_op.h"

#include <optional>
#include <string>
#include <vector>

namespace deepgen::tensors {

enum class Step {
  argument, ///< of a body: the element of operand `index`
  product,  ///< of a chain: the element of A * B
  operand,  ///< of a chain: an element of another tensor, `index` in the chain's list
  constant, ///< `number`
  add,      ///< of floats or integers, as all below
  subtract,
  multiply,
  divide,
  negate,
  maximum, ///< NaN stays NaN
  minimum, ///< likewise
  exp,
  exp2,
  tanh,
  erf,
  square_root,
  reciprocal_root,
  power,
  widen,        ///< extf, extsi: every value stays what it is
  round,        ///< truncf
  from_integer, ///< sitofp
  greater,      ///< compares: true for NaN, too
  select,
  other ///< anything else, `name`
};

struct Node {
  Step step = Step::other;
  std::string type;    ///< of the result, as MLIR prints it
  std::vector<int> in; ///< nodes before this one
  int index = 0;
  double number = 0;
  std::string name;
};

struct Formula {
  static constexpr size_t most_nodes = 400;
  std::vector<Node> nodes;
  int root = -1; ///< the result; -1: none, or more than one

  int add(Node);
  const Node& at(int node) const { return nodes[size_t(node)]; }
  /// Behind conversions, which are left out.
  int behind_casts(int node) const;
  /// Whether the element of a body's operand is used at all.
  bool uses_argument(int index) const;
  bool is(int node, Step step) const { return at(node).step == step; }
  std::optional<double> constant(int node) const; ///< behind conversions
};

/// Which of gelu, gelu_tanh, silu and sigmoid the node `root` is of the node `variable`; nothing when it is
/// none. By values at many points, so that it does not matter how it is written; only of smooth operations,
/// which cannot differ between the points.
std::optional<EpilogueOp> activation_of(const Formula&, int root, int variable);
} // namespace deepgen::tensors
