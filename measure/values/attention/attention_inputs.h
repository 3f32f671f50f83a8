// Calls of an attention as verification and timing make them: sizes, places of elements, seeded values.
#pragma once

#include "base/problem/attention.h"
#include "measure/values/attention/attention_bias.h"
#include "measure/values/attention/attention_pages.h"
#include "measure/values/inputs.h"
#include "measure/values/loader.h"

#include <vector>

namespace deepgen {

/// Sizes of one call, and what else it may choose.
struct AttentionShape {
  int64_t batch = 1, queries = 1, keys = 1; ///< of an entry, at most
  bool by_head = false;                     ///< [entry, head, token, dimension]; else tokens before heads
  int64_t gap = 0;                          ///< elements behind a row in memory
  double scale = 0;                         ///< 0: as a call that passes none
  double softcap = 0;
  int64_t left = -1, right = -1;
  double magnitude = 8; ///< of Q; K and V are in [-1, 1)
  /// With varlen: of each entry; empty: all have queries, keys.
  std::vector<int32_t> query_counts, key_counts, keys_used;
  bool shared_pages = false; ///< with pages: entries have some in common
  int64_t table_gap = 0;     ///< ids behind an entry's in the table
  bool one_bias_of_entries = false, one_bias_of_heads = false, one_bias_of_queries = false;
  bool bias_hides = true; ///< some keys, and all of some rows

  bool operator==(const AttentionShape&) const = default;
  int64_t queries_of(int64_t entry) const {
    return query_counts.empty() ? queries : query_counts[size_t(entry)];
  }
  int64_t keys_of(int64_t entry) const; ///< that count
  double scale_of(const Attention&) const;
  std::vector<int32_t> query_offsets() const;
  std::vector<int32_t> key_offsets() const;
};

/// The call that the problem is tuned for, as it is timed: with its window, and one bias for all entries, as
/// biases by position are.
AttentionShape tuned_shape(const Attention&);

/// Where an operand's elements are: rows of `columns` elements, `ld` apart.
class TokenLayout {
public:
  /// `counts`: of the entries, one behind the other; empty: each has `tokens`.
  TokenLayout(const AttentionShape&, const std::vector<int32_t>& counts, int64_t tokens, int64_t heads,
              int64_t dimension);
  /// Of keys or values: where `pages` are, pages instead of entries.
  TokenLayout(const AttentionShape&, const AttentionPages& pages, int64_t heads, int64_t dimension);

  bool paged() const { return table_stride_ > 0; }
  int64_t rows() const { return by_head_ ? total_ * heads_ : total_; }
  int64_t columns() const { return by_head_ ? dimension_ : heads_ * dimension_; }
  int64_t ld() const { return columns() + gap_; }
  int64_t row(int64_t entry, int64_t token, int64_t head) const;
  int64_t column(int64_t head) const { return by_head_ ? 0 : head * dimension_; }
  int64_t token_stride() const { return ld(); }
  int64_t head_stride() const { return by_head_ ? (packed() ? total_ : tokens_) * ld() : dimension_; }
  /// With pages: from page to page.
  int64_t entry_stride() const { return packed() ? 0 : tokens_ * ld() * (by_head_ ? heads_ : 1); }

private:
  bool packed() const { return !first_.empty(); }
  bool by_head_;
  int64_t tokens_, heads_, dimension_, gap_, total_;
  std::vector<int64_t> first_; ///< token of each entry
  std::vector<int32_t> table_; ///< ids of pages, `table_stride_` of an entry; empty: there are none
  int64_t table_stride_ = 0;
};

/// What a call of an attention gets.
struct AttentionCall {
  const void *q = nullptr, *key = nullptr, *value = nullptr;
  void* out = nullptr;
  float* lse = nullptr; ///< [entry, head, token], or [token, head] where entries are packed
  const float* sink = nullptr;
  const void* bias = nullptr;
  const int32_t *query_offsets = nullptr, *key_offsets = nullptr, *keys_used = nullptr;
  const int32_t* page_table = nullptr;
  const TokenLayout *q_layout = nullptr, *key_layout = nullptr, *value_layout = nullptr,
                    *out_layout = nullptr;
  const BiasLayout* bias_layout = nullptr; ///< with a bias
  const AttentionShape* shape = nullptr;
  void* workspace = nullptr;
};
SlotValues values_of(const Attention&, const AttentionCall&);

/// Operands of one call, in their layouts without gaps; a value depends on the seed and its place alone.
struct AttentionInputs {
  AttentionInputs(const Attention&, const AttentionShape&, uint64_t seed);

  AttentionShape shape;
  AttentionPages pages;
  TokenLayout q_layout, key_layout, value_layout, out_layout;
  BiasLayout bias_layout;
  PageBuffer q, key, value, bias;
  std::vector<float> sink;
  std::vector<int32_t> query_offsets, key_offsets; ///< empty where there are none

  /// Of lse: as AttentionCall::lse.
  int64_t lse_index(const Attention&, int64_t entry, int64_t token, int64_t head) const;
  int64_t lse_count(const Attention&) const;
};

} // namespace deepgen
