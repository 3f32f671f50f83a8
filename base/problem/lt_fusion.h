// What cuBLASLt and hipBLASLt do of an epilogue in the multiplication itself.
#pragma once

#include "base/problem/gemm.h"

namespace deepgen {

struct LtFusion {
  bool scales = false, bias = false, residual = false;
  enum Activation { none, relu, gelu_tanh } activation = none;
  std::vector<EpilogueOp> rest; ///< what they do not, in order
};

/// From the epilogue's beginning, as far as their own order goes: scales of A and B of 8-bit floats, bias and
/// residual in any order, an activation.
LtFusion fuse_lt(const Gemm&);

} // namespace deepgen
