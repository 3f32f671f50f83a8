// What one x86-64 level offers to a kernel with elements of one type.
#pragma once

#include "base/problem/types.h"

#include <cstdint>

namespace deepgen {

struct VectorIsa {
  int64_t level = 1; ///< x86-64 micro-architecture level, 1..4 (System V psABI)
  Type element = Type::f32;

  int64_t bytes() const { return level >= 4 ? 64 : level >= 3 ? 32 : 16; }
  int64_t lanes() const { return bytes() / size_of(element); }
  int64_t registers() const { return level >= 4 ? 32 : 16; }
  bool has_fma() const { return level >= 3; }
};

} // namespace deepgen
