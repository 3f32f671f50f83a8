// How fast tensor cores are by mma.sync.
#pragma once

#include <cstdint>

namespace deepgen {

/// Floating-point operations a clock and multiprocessor that mma.sync reaches with 16-bit operands and f32
/// sums.
inline double mma_rate16(int64_t capability) {
  switch (capability) {
  case 80:
    return 2048;
  case 90:
    return 1700; // measured on H200s; wgmma: 4096
  case 100:
    return 2048;
  default:
    return 1024; // sm_86, sm_89, sm_120
  }
}

} // namespace deepgen
