// How rows are shared among groups where a problem with groups is verified and timed.
#pragma once

#include "base/problem/gemm.h"

namespace deepgen {

/// With what a table of offsets tries a kernel.
enum class Sharing {
  even,   ///< as equal as whole rows allow
  skewed, ///< group number r of a random order has a share of 1 / (r + 2), and each row finds its group by
          ///< chance
  one,    ///< one group has all rows
  sparse, ///< every other group has none, the others odd numbers, and there are rows before and behind all
          ///< groups
};
inline constexpr Sharing all_sharings[] = {Sharing::even, Sharing::skewed, Sharing::one, Sharing::sparse};

/// groups + 1 values. The same for the same seed on every host.
std::vector<int32_t> group_offsets(const Gemm&, Sharing, uint64_t seed);

/// What the sets of operands of a timed ring have in turn: even and skewed.
inline constexpr int64_t timed_sharings = 2;
inline Sharing timed_sharing(size_t set) { return set % 2 ? Sharing::skewed : Sharing::even; }

} // namespace deepgen
