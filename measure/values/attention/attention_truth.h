// What a call of an attention is held against: its operands, and the rows that it must become.
#pragma once

#include "measure/values/attention/attention_comparison.h"

#include <memory>

namespace deepgen {

struct AttentionTruth {
  AttentionTruth(const Attention&, const AttentionShape&, AttentionArithmetic, double most_products,
                 uint64_t seed);

  AttentionInputs inputs;
  AttentionComparison check;
};

/// Made once for all calls of the same shape and values, whatever call the problem is tuned for, as long as
/// somebody holds it: so all kernels of a search share one, and so do processes that fork behind it.
std::shared_ptr<const AttentionTruth> attention_truth(const Attention&, const AttentionShape&,
                                                      AttentionArithmetic, double most_products,
                                                      uint64_t seed);

} // namespace deepgen
