// Small floats: numbers of 8 bits, in the OCP formats and in those of gfx942 (FNUZ: the bias is one more,
// neither infinity nor negative zero, and NaN is 0x80).
#pragma once

#include <cstdint>

namespace deepgen::amd_sim {

struct SmallFormat {
  int exponent_bits = 4; ///< 4: fp8 (e4m3), 5: bf8 (e5m2)
  bool fnuz = false;
};

double decode_small(SmallFormat, uint64_t bits);
/// To nearest, ties to even; too large: the largest finite value.
uint64_t encode_small(SmallFormat, double);

} // namespace deepgen::amd_sim
