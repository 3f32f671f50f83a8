// How a packed B lies in memory. The runtime writes it, kernels read it, and the generator and the
// measurement count with it: the layout follows from the problem alone, so that all kernels of a function
// share it.
//
// A header of 64 bytes comes first. Behind it lies one matrix after the other, each as panels of some columns
// with all of K. A row of a panel has a word of each column: `group` elements that follow each other along K,
// as vdpbf16ps, vpdpbusd and AMX take them. What B has no element for is zero. With a gate, the first half of
// a panel's columns are of one weight, the second half the same columns of the other. Panels of i8 begin with
// a number for each column, which kernels add where they take A as u8 with 128 more: -128 times its sum.
#ifndef DEEPGEN_PACKED_LAYOUT_H
#define DEEPGEN_PACKED_LAYOUT_H

#include "kernel_abi.h"

/* Runtimes of several versions may be linked into one program. */
#define DEEPGEN_LAYOUTS_OF_ABI(abi) layouts_of_abi##abi
#define DEEPGEN_LAYOUTS_OF(abi) DEEPGEN_LAYOUTS_OF_ABI(abi)
#define DEEPGEN_LAYOUTS DEEPGEN_LAYOUTS_OF(DEEPGEN_ABI)

namespace deepgen {
inline namespace DEEPGEN_LAYOUTS {

struct PackedLayout {
  int64_t columns = 0; ///< of a panel, of both weights of a gate
  int64_t group = 1;   ///< elements of K in a word
  int64_t element = 4; ///< bytes
  int64_t sums = 0;    ///< bytes at a panel's beginning
  int64_t depth = 0;   ///< K, rounded up to whole tiles of AMX where there are such tiles
  int64_t halves = 1;  ///< 2 with a gate
  int64_t panels = 0, panel_bytes = 0, entry_bytes = 0;
  int64_t bytes = 0; ///< of all, with the header

  constexpr int64_t width() const { return columns / halves; } ///< columns of D of a panel
  constexpr int64_t row_bytes() const { return columns * group * element; }
};

/// Raised where the numbers below come to mean something else: older packed memory is then refused.
constexpr int64_t packed_layout_version = 1;
constexpr int64_t packed_header_bytes = 64;
/// Elements of a B that is packed, at most: all sizes stay far from an overflow.
constexpr double most_packed_elements = 1099511627776.0; // 2^40

constexpr bool can_pack(uint8_t type) {
  return type == DEEPGEN_F32 || type == DEEPGEN_F64 || type == DEEPGEN_F16 || type == DEEPGEN_BF16 ||
         type == DEEPGEN_I8;
}

/// `n`: columns of D. The type is one that can_pack().
constexpr PackedLayout packed_layout(uint8_t type, int64_t n, int64_t k, int64_t entries, bool gated) {
  constexpr int64_t tile_row = 64; // bytes of K that AMX multiplies at once
  PackedLayout x;
  x.halves = gated ? 2 : 1;
  x.columns = type == DEEPGEN_F64 ? 16 : 32;
  // Tiles of f32 and f64 may be four vectors wide: half the loads of A of two. A B of two vectors needs no
  // more.
  if ((type == DEEPGEN_F32 || type == DEEPGEN_F64) && n > x.width()) x.columns *= 2;
  x.element = type == DEEPGEN_F64 ? 8 : type == DEEPGEN_F32 ? 4 : type == DEEPGEN_I8 ? 1 : 2;
  x.group = type == DEEPGEN_BF16 ? 2 : type == DEEPGEN_I8 ? 4 : 1;
  x.sums = type == DEEPGEN_I8 ? 4 * x.columns : 0;
  const int64_t step = x.group > 1 ? tile_row / x.element : 1;
  x.depth = (k + step - 1) / step * step;
  x.panels = (n + x.width() - 1) / x.width();
  x.panel_bytes = x.sums + x.depth / x.group * x.row_bytes();
  x.entry_bytes = x.panels * x.panel_bytes;
  x.bytes = packed_header_bytes + entries * x.entry_bytes;
  return x;
}

/// Names the layout: equal for memory that may be exchanged.
constexpr uint64_t packed_layout_id(uint8_t type, int64_t n, int64_t k, int64_t entries, bool gated) {
  const PackedLayout x = packed_layout(type, n, k, entries, gated);
  const int64_t words[] = {
      packed_layout_version, type, n, k, entries, x.halves, x.columns, x.group, x.depth, x.sums, x.element};
  uint64_t id = 0xcbf29ce484222325u; // FNV-1a, by words
  for (const int64_t word : words) {
    id = (id ^ uint64_t(word)) * 0x100000001b3u;
    id ^= id >> 29;
  }
  return id ? id : 1; // 0 is of kernels that take B as it is stored
}

} // namespace DEEPGEN_LAYOUTS
} // namespace deepgen
#endif
