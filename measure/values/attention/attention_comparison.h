// Which rows of a call are compared with the reference, and how. All of them, where that is little work. Else
// of each head of each entry the first one and the last; of each tile of 64 tokens its first row, its last
// one, or a seeded one, in turn from tile to tile and from head to head; and a seeded choice of others.
#pragma once

#include "measure/values/attention/attention_case.h"
#include "measure/values/attention/attention_expected.h"

#include <functional>
#include <optional>

namespace deepgen {

/// Of a call with more products its rows are a sample: about as many of them, or one row of each tile.
inline constexpr double most_attention_products = 3e8;
inline constexpr int64_t sampled_tile = 64; ///< tokens

/// Which of an entry's tokens are compared, of one head. `share`: of them all, beside those that always are.
std::vector<int64_t> compared_tokens(int64_t queries, int64_t entry, int64_t head, double share,
                                     uint64_t seed);

class AttentionComparison {
public:
  AttentionComparison(const Attention&, const AttentionInputs&, AttentionArithmetic, double most_products,
                      uint64_t seed);

  /// Where a row of out in memory is, by TokenLayout::row().
  using OutRow = std::function<const char*(int64_t row)>;
  /// `lse`: null where the problem has none. `of`: out's type, where it is not the problem's.
  Verdict compare(const OutRow& out, const void* lse, std::optional<Type> of = {}) const;
  /// Whether all that is written is a number, compared or not, and no greater than values are.
  Verdict check_finite(const OutRow& out, std::optional<Type> of = {}) const;
  size_t rows() const { return rows_.size(); } ///< that are compared

private:
  struct Row {
    int64_t entry, token, head;
    ExpectedAttention expected;
  };
  std::vector<Row> expected(const AttentionReference&, int64_t entry, int64_t g, double share,
                            uint64_t seed) const;
  std::string place(const char* operand, const Row&) const;

  Attention problem_;
  const AttentionInputs& inputs_;
  std::vector<Row> rows_;
};

} // namespace deepgen
