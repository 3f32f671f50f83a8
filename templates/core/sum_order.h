// In what words templates tell the order of their sums over K: Template::sum_order().
#pragma once

#include "base/problem/gemm.h"
#include "templates/core/sizes.h"

#include <string>

namespace deepgen {

/// Sums of integers are the same in every order, modulo 2^32.
inline bool sums_are_exact(const Gemm& p) { return p.accumulate == Type::i32; }
inline constexpr const char* kExactSums = "integers, in any order";

/// `parts` add up K apart, each tile of `tile` elements in one of them, in turn; their sums are added in
/// order. Empty for one part.
inline std::string parts_in_turn(const std::string& what, int64_t parts, int64_t tile) {
  return parts == 1 ? "" : ", " + what + "=" + text(parts) + " by tiles of " + text(tile) + " in turn";
}

/// The same of parts that have neighbouring tiles each, as many as the others. Of a K that is fixed only the
/// length of a part matters, in whatever tiles.
inline std::string neighbouring_parts(const Gemm& p, int64_t parts, int64_t tile) {
  if (parts == 1) return "";
  if (p.ranged(Size::k)) return ", splits=" + text(parts) + " of neighbouring tiles of " + text(tile);
  return ", splits of " + text(ceil_div(ceil_div(p.k, tile), parts) * tile);
}

} // namespace deepgen
