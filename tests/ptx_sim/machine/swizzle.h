// Swizzle: where tensor copies and wgmma find 16 bytes of a tile: bits of the row, by whole 128 bytes, are
// added without carry to the place in it.
#pragma once

#include <cstdint>

namespace deepgen::ptx_sim {

/// `span`: 0 (none), 32, 64 or 128 bytes.
inline uint64_t swizzled(uint64_t address, uint64_t span) {
  const uint64_t chunks = span ? span / 16 - 1 : 0;
  return address ^ ((address >> 7 & chunks) << 4);
}

} // namespace deepgen::ptx_sim
