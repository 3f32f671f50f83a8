// Steps: the formula of an element of D as the steps of an epilogue.
#pragma once

#include "workload/mlir/chain.h"

namespace deepgen::tensors {

/// A tensor that a formula has elements of, and which: for each of its dimensions the loop of the product.
struct Leaf {
  int value = -1;
  Map loops;
};

/// What a formula comes to. `why` is empty when it is an epilogue.
struct Steps {
  std::vector<EpilogueOp> epilogue;
  std::vector<ChainOperand> operands; ///< of the epilogue's steps
  ChainNumbers numbers;               ///< bounds of clamp, strides of a residual
  double alpha = 1;
  Type d = Type::f32;
  std::string why;
};

Steps steps_of(const Graph&, const Product&, const Formula&, const std::vector<Leaf>&);

/// Where the elements of a leaf stand, as an operand of the epilogue; nothing when nowhere.
std::optional<StepShape> shape_of(const Graph&, const Product&, const Leaf&);

} // namespace deepgen::tensors
