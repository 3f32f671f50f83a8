// What the tensor map of an operand of attention is of, in one call: as the runtime encodes it
// (runtime/nvidia/cuda_tensor_map.cpp).
#pragma once

#include "base/problem/attention.h"
#include "measure/values/loader.h"

#include <array>
#include <string>

namespace deepgen {

struct TokenMap {
  Type type;
  uint64_t base;
  std::array<uint64_t, 4> sizes;   ///< dimension, tokens, heads, entries or pages; elements
  std::array<uint64_t, 3> pitches; ///< from one token, head and entry to the next; bytes
  /// Nothing is read by a map of nothing, and the driver makes none.
  bool empty() const { return !sizes[1] || !sizes[3]; }
};

/// `operand`: "q", "key" or "value".
TokenMap token_map(const Attention&, const std::string& operand, const SlotValues& call);

} // namespace deepgen
