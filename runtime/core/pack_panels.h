// Writes B into panels (deepgen/packed_layout.h). The measurement includes it, too, so it needs the standard
// library and the public headers alone.
#pragma once

#include "deepgen/packed_layout.h"
#include "runtime/core/abi.h"

#include <cstring>

namespace deepgen::panels {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// B as it is stored, sizes in elements.
struct Source {
  const void* data;
  int64_t ld, stride;
  int64_t n, k, entries; ///< columns of D
  bool transposed;       ///< rows along K
};

/// One weight's part of a panel: `columns` of them exist. Element (k, w) of the panel is at word (k / group,
/// w), `pitch` words a row.
template <typename Element>
void pack_columns(const PackedLayout& x, const Source& b, const Element* from, int64_t columns, Element* to) {
  const int64_t along = b.transposed ? 1 : b.ld, across = b.transposed ? b.ld : 1;
  for (int64_t k = 0; k < b.k; k += x.group) {
    Element* row = to + k / x.group * x.columns * x.group;
    const int64_t count = b.k - k < x.group ? b.k - k : x.group;
    for (int64_t w = 0; w < columns; ++w)
      for (int64_t i = 0; i < count; ++i) row[w * x.group + i] = from[(k + i) * along + w * across];
  }
}

/// What 128 more in each element of a row of A adds, negated, modulo 2^32.
inline void add_sums(const PackedLayout& x, char* panel) {
  for (int64_t w = 0; w < x.columns; ++w) {
    uint32_t sum = 0;
    for (int64_t g = 0; g < x.depth / x.group; ++g)
      for (int64_t i = 0; i < x.group; ++i) {
        int8_t value;
        std::memcpy(&value, panel + x.sums + (g * x.columns + w) * x.group + i, 1);
        sum += uint32_t(int32_t(value));
      }
    sum = 0u - 128u * sum;
    std::memcpy(panel + 4 * w, &sum, 4);
  }
}

template <typename Element>
void pack_all(const PackedLayout& x, const Source& b, char* data) {
  for (int64_t e = 0; e < b.entries; ++e)
    for (int64_t p = 0; p < x.panels; ++p) {
      char* panel = data + e * x.entry_bytes + p * x.panel_bytes;
      std::memset(panel, 0, size_t(x.panel_bytes));
      const int64_t first = p * x.width(), left = b.n - first;
      for (int64_t h = 0; h < x.halves; ++h) {
        const int64_t column = first + h * b.n;
        const Element* from =
            static_cast<const Element*>(b.data) + e * b.stride + column * (b.transposed ? b.ld : 1);
        Element* to = reinterpret_cast<Element*>(panel + x.sums) + h * x.width() * x.group;
        pack_columns(x, b, from, left < x.width() ? left : x.width(), to);
      }
      if (x.sums) add_sums(x, panel);
    }
}

/// All panels of all entries, from `data` on, which is aligned to 64 bytes.
inline void pack(const PackedLayout& x, const Source& b, char* data) {
  switch (x.element) {
  case 1:
    return pack_all<uint8_t>(x, b, data);
  case 2:
    return pack_all<uint16_t>(x, b, data);
  case 4:
    return pack_all<uint32_t>(x, b, data);
  default:
    return pack_all<uint64_t>(x, b, data);
  }
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::panels
