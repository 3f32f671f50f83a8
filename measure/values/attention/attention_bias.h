// The bias of scores as calls have it: rows of keys, for each query, head and entry, or one for all of these.
#pragma once

#include "base/problem/attention.h"
#include "measure/values/inputs.h"

#include <vector>

namespace deepgen {

struct AttentionShape;

class BiasLayout {
public:
  BiasLayout(const Attention&, const AttentionShape&); ///< of a problem without a bias there are no rows

  int64_t rows() const { return entries_ * heads_ * queries_; } ///< that differ
  int64_t columns() const { return columns_; }
  int64_t ld() const { return columns_ + gap_; }
  int64_t row(int64_t entry, int64_t head, int64_t token) const {
    return (entry % entries_ * heads_ + head % heads_) * queries_ + token % queries_;
  }
  // In elements; 0: one for all.
  int64_t query_stride() const { return queries_ > 1 ? ld() : 0; }
  int64_t head_stride() const { return heads_ > 1 ? queries_ * ld() : 0; }
  int64_t entry_stride() const { return entries_ > 1 ? heads_ * queries_ * ld() : 0; }

private:
  int64_t entries_ = 0, heads_ = 0, queries_ = 0, columns_ = 0, gap_ = 0; ///< 1: one for all
};

/// Dense, in (-4, 4); of 16 keys about one is hidden, and so is a row of 16: by -infinity, and in every
/// second row by the lowest bf16, unless it is f16; none where it does not `hide`.
PageBuffer random_bias(const Attention&, const BiasLayout&, uint64_t seed, bool hide);

/// Which elements in memory, gaps among them, some row may see: the others are in no result.
std::vector<bool> used_bias(const Attention&, const BiasLayout&, const AttentionShape&);
/// The operand as a call finds it in memory; what is not used is 0xff, a NaN.
std::vector<char> stored_bias(const Attention&, const BiasLayout&, const AttentionShape&,
                              const PageBuffer& dense);

} // namespace deepgen
