// Attention of what a BLAS offers, as the baseline: what a user without a fused kernel writes.
#pragma once

#include "measure/values/attention/attention_inputs.h"
#include "measure/vendor/cpu/vendor.h"

namespace deepgen {

/// For each head: scores by a product, a vectorised softmax of their rows, and the sums of values by a second
/// product, whose scores are in memory in between. The mask hides scores that the first product computes.
class VendorAttention {
public:
  /// Why there is none; empty when there is.
  static std::string why_not(const Attention&);

  /// The call's operands must outlive it.
  VendorAttention(const Vendor&, const Attention&, const AttentionCall&);
  void run();

private:
  Attention problem_;
  AttentionShape shape_;
  std::vector<float> scores_;
  std::vector<std::function<void()>> products_; ///< of each head in turn: of keys, of values
};

/// Row t of the scores of `queries` x `keys`: their softmax where the mask shows a key, 0 elsewhere.
void masked_softmax(float* scores, int64_t queries, int64_t keys, AttentionMask);

} // namespace deepgen
