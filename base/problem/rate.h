// How fast a call is, in the unit that an operator is bound by.
#pragma once

#include "base/problem/problem.h"

namespace deepgen {

struct Rate {
  double per_call;  ///< what one call computes or moves
  const char* unit; ///< of 1e9 of it in a second: "GFLOP/s", "GB/s"

  double of(double seconds) const { return per_call / seconds * 1e-9; }
};

/// A GEMM's operations; of rows, which memory bounds, the bytes of operands read or written once.
inline Rate rate_of(const Problem& p) {
  return p.op() == "rows" ? Rate{p.bytes(), "GB/s"} : Rate{p.flops(), "GFLOP/s"};
}

} // namespace deepgen
