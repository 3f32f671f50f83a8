// LdsSwizzle: the order of a row's pieces in LDS. The 16 bytes number i of a row lie at i ^ of(row), so that
// the lanes that are served at a time find different banks. Of disjoint bits of a row, it is the exclusive or
// of each one's.
#pragma once

#include "templates/ir/value.h"

namespace deepgen {

/// Bytes that LDS serves at a time.
inline int64_t lds_banks(const std::string& arch) { return arch == "gfx950" ? 256 : 128; }

struct LdsSwizzle {
  int64_t row_bytes; ///< 64 or more, a power of two
  int64_t banks;     ///< lds_banks()

  int64_t of(int64_t row) const;
  Value of(GpuIr&, Value row) const;

private:
  int64_t rows() const;   ///< that fill all banks once
  int64_t pieces() const; ///< of a row that differ in their banks
  /// Where four rows fill the banks, lanes of two groups with rows 0 and 12, 4 and 8 (or the other way
  /// around) are served at a time: 0, 1, 2, 3 become 0, 2, 3, 1.
  bool four_rows() const { return rows() == 4; }
};

} // namespace deepgen
