// A B that is packed ahead, and that calls with few rows read once, from memory.
#pragma once

#include "base/kernel/device.h"
#include "base/problem/packed_b.h"

#include <algorithm>

namespace deepgen {

/// Rows of a call that does.
constexpr int64_t kFewPackedRows = 32;

/// Bytes a cycle from memory, of lines that are asked for well ahead, and of others: a prefetcher stops at
/// each page. 24 to 29, and 10 to 13 GB/s, on a core of Intel's fourth generation of scalable processors
/// (benchmarks/cpu/results/xeon-few.md).
constexpr double kAskedBytes = 7, kUnaskedBytes = 3;

/// Cycles for an element of A in place whose rows share sets of the caches, through which B passes (f32, 8 x
/// 4096 x 4096: 4.3 ms, and 2.7 with A packed).
constexpr double kStreamConflict = 0.5;
inline bool rows_conflict(const Gemm& p, int64_t rows) {
  return p.packed_b && p.m <= kFewPackedRows && rows >= 4 && !p.a_transposed() &&
         p.k * size_of(p.a) % 4096 == 0;
}

/// Cycles of a matrix of the batch whose products take `cycles` where B is near. What is asked for ahead
/// comes beside them; a part of the shorter of both is still seen.
inline double with_stream(const Gemm& p, const Device& device, bool asked, double cycles) {
  constexpr double kSeen = 0.15;
  if (!p.packed_b || p.m > kFewPackedRows) return cycles;
  const auto bytes = double(packed_layout(p).entry_bytes);
  if (bytes <= double(device.l2)) return cycles;
  if (!asked) return cycles + bytes / kUnaskedBytes;
  return std::max(cycles, bytes / kAskedBytes) + kSeen * std::min(cycles, bytes / kAskedBytes);
}

} // namespace deepgen
