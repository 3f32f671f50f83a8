// A B that comes from memory: packed ahead, for calls with few rows that read it once, or as it is, along K.
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

/// Of a B along K that no cache holds: bytes a cycle from memory, beside the way from L2; and for each piece
/// of a row of B that a block of K is, as prefetchers stop at its end. From 69 configs of 1 to 4 x 4096 x
/// 4096 (f32, nt) on a Zen 4: 80 ns a piece, 1.9 ns a line (benchmarks/cpu/results/epyc-few-depths.csv).
constexpr double kMemoryBytes = 17, kPiece = 240;
/// The same of rows that are asked for while the tile before is multiplied: beside its products, of which a
/// part is still seen, and faster the more rows follow each other side by side. From 144 configs of 1 to 64 x
/// 4096 x 4096 on a Zen 4: 30 GB/s of 4 rows, 34 of 8 (epyc-next-tile.csv).
constexpr double kAskedAhead = 12.7, kSeenBeside = 0.2;

/// What of it comes from memory.
struct MemoryStream {
  double bytes = 0;  ///< of all sweeps; 0: a cache holds it
  double pieces = 0; ///< of rows
  int64_t asked = 0; ///< rows of a tile that are asked for while the one before is multiplied; 0: none
};

inline double bytes_of_b(const Gemm& p) {
  return double(p.sum_columns()) * double(p.k) * double(size_of(p.b));
}

/// Of a B along K that is read `sweeps` times, whether it is copied or multiplied in place, in `k_blocks`
/// pieces of each row.
inline MemoryStream stream_along_k(const Gemm& p, const Device& device, double sweeps, int64_t k_blocks,
                                   int64_t asked) {
  const double bytes = bytes_of_b(p);
  if (!p.b_transposed() || p.packed_b || bytes <= double(std::max(device.l2, device.l3))) return {};
  return {sweeps * bytes, sweeps * double(p.sum_columns() * k_blocks), asked};
}

/// Cycles of a product that takes `cycles` where B is near.
inline double with_memory(const MemoryStream& x, double cycles) {
  if (!x.asked) return cycles + x.bytes / kMemoryBytes + x.pieces * kPiece;
  const double stream = x.bytes / (kAskedAhead * double(x.asked) / double(x.asked + 1));
  return std::max(cycles, stream) + kSeenBeside * std::min(cycles, stream);
}

/// Cycles for an element of A in place whose rows share sets of the caches, through which B passes (f32, 8 x
/// 4096 x 4096: 4.3 ms, and 2.7 with A packed).
constexpr double kStreamConflict = 0.5;
inline bool rows_conflict(const Gemm& p, int64_t rows) {
  return p.packed_b && p.m <= kFewPackedRows && rows >= 4 && !p.a_transposed() &&
         p.k * size_of(p.a) % 4096 == 0;
}

constexpr double kSeen = 0.15; ///< of what was asked for ahead

/// Cycles of a matrix of the batch whose products take `cycles` where B is near. What is asked for ahead
/// comes beside them; a part of the shorter of both is still seen.
inline double with_stream(const Gemm& p, const Device& device, bool asked, double cycles) {
  if (!p.packed_b || p.m > kFewPackedRows) return cycles;
  const auto bytes = double(packed_layout(p).entry_bytes);
  if (bytes <= double(device.l2)) return cycles;
  if (!asked) return cycles + bytes / kUnaskedBytes;
  return std::max(cycles, bytes / kAskedBytes) + kSeen * std::min(cycles, bytes / kAskedBytes);
}

} // namespace deepgen
