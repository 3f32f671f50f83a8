// Which rows of a call are compared with the reference, and how.
#pragma once

#include "measure/values/attention/attention_case.h"
#include "measure/values/attention/attention_expected.h"

#include <functional>

namespace deepgen {

class AttentionComparison {
public:
  /// Compares all rows, or of a call with more than `most_products` the last one of each head and entry and a
  /// seeded choice of others. `weights`: the type in which the kernel multiplies them, see
  /// AttentionReference.
  AttentionComparison(const Attention&, const AttentionInputs&, Type weights, double most_products,
                      uint64_t seed);

  /// Where a row of out in memory is, by TokenLayout::row().
  using OutRow = std::function<const char*(int64_t row)>;
  /// `lse`: null where the problem has none.
  Verdict compare(const OutRow& out, const void* lse) const;
  /// Whether all that is written is a number, compared or not.
  Verdict check_finite(const OutRow& out) const;

private:
  struct Row {
    int64_t entry, token, head;
    ExpectedAttention expected;
  };
  std::string place(const char* operand, const Row&) const;

  Attention problem_;
  const AttentionInputs& inputs_;
  std::vector<Row> rows_;
};

} // namespace deepgen
