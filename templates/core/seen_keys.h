// What tiles of rows of an attention see of its keys, in the call that it is tuned for, and how few rows
// there may be.
#pragma once

#include "base/problem/attention.h"

namespace deepgen {

/// Rows of Q, one behind the other, of which `group` have one token: heads of Q that share one of K.
struct RowTile {
  int64_t rows, group = 1;

  /// Tokens that one has rows of, at most.
  int64_t tokens(const Attention&) const;
  /// Keys that some row of one sees, of the tile that sees most.
  int64_t most_keys(const Attention&) const;
  /// Keys that a tile goes over on average, in blocks of `block` keys: from where the first one begins that
  /// it sees a key of, to the last key that it sees.
  double mean_keys(const Attention&, int64_t block) const;
  /// The same, in blocks.
  double mean_key_blocks(const Attention&, int64_t block) const;
};

/// Of an entry, in the call with fewest that the function is tuned for.
int64_t fewest_tuned_queries(const Attention&);

} // namespace deepgen
