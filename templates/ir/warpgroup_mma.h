// Products of a warpgroup of Hopper's: their shapes, and their operands in shared memory.
#pragma once

#include "base/problem/types.h"
#include "templates/ir/value.h"

namespace deepgen {

/// One operand of wgmma as it lies in shared memory: slices of 128 bytes, swizzled by 128 bytes, as TMA
/// writes them. K-major: each row of the operand is 128 bytes of K. Otherwise each row is one element of K
/// with 64 (16-bit) elements along M or N, and slices follow each other every `slice_bytes`.
struct MatrixOperand {
  Value address; ///< of the tile, i32, aligned to 1024 bytes but for the rows of other warpgroups
  bool k_major = true;
  /// From one 64 elements along M or N to the next; of a K-major operand, from one 128 bytes of K.
  int64_t slice_bytes = 0;
};

/// The shape and types of a warpgroup's product: 64 x n, in steps of 32 bytes of K.
struct WarpgroupMma {
  Type a, b, accumulate;
  int64_t n;

  int64_t registers() const { return n / 2; } ///< of a thread, 64 x n sums
  /// Multiplies 64 * m_tiles rows of A by n columns of B over `depth_bytes` of K (of a K-major operand).
  int64_t m_tiles = 1, depth_bytes = 128;
};

/// Where the operands of one step of 32 bytes of K lie, in bytes from their addresses.
struct ProductStep {
  int64_t a, b;
};

} // namespace deepgen
