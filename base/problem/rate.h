// How fast a call is, in the unit that an operator is bound by.
#pragma once

namespace deepgen {

struct Rate {
  double per_call;  ///< what one call computes or moves
  const char* unit; ///< of 1e9 of it in a second: "GFLOP/s", "GB/s"

  double of(double seconds) const { return per_call / seconds * 1e-9; }
};

} // namespace deepgen
