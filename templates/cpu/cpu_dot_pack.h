// Packing for cpu_dot: blocks of A and B as panels of words.
#pragma once

#include "templates/cpu/cpu_words.h"

namespace deepgen {

/// A panel has, for each group of K, a word of each of `width` rows of A or columns of B, of which `valid`
/// exist; the others are zero. Word (g, w) is at g * row + w, or, `by_rows`, in squares of 16 words of each
/// row: at (g / 16) * 16 * row + 16 w + g % 16.
struct DotPanel {
  Type type; ///< of the source
  int64_t width, valid;
  int64_t row;  ///< width, or more where panels are side by side
  bool k_major; ///< the source's rows run along columns, not along K
  bool by_rows;
  bool shifts;     ///< 128 more in every byte
  int64_t rest;    ///< elements by which K exceeds blocks' whole vectors of groups: the last block's end
  int64_t padding; ///< groups of zeros behind the last block's

  std::string name() const;
};

/// Defines (once) and names a function (source, ld, destination, k) that packs k elements of each row or
/// column.
std::string dot_pack_function(Ir&, const Dot&, const DotPanel&);

/// Defines (once) and names a function (panel, groups, sums) that writes, for each column of a packed B, what
/// 128 more in A's elements adds to the sums, negated.
std::string dot_shift_function(Ir&, const Dot&, int64_t width);

} // namespace deepgen
