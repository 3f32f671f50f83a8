// A table of pages as a serving program has it: in any order, of a cache with more pages than a call reads,
// some of them shared between entries.
#pragma once

#include "base/problem/attention.h"

#include <vector>

namespace deepgen {

struct AttentionShape;

struct AttentionPages {
  AttentionPages() = default; ///< of a problem without pages
  AttentionPages(const Attention&, const AttentionShape&, uint64_t seed);

  int64_t size = 0;           ///< tokens of a page
  int64_t count = 0;          ///< pages of the cache
  int64_t stride = 0;         ///< ids of an entry in the table
  std::vector<int32_t> table; ///< what is no page of a key that counts is no page at all: `nowhere`

  static constexpr int32_t nowhere = 0x7ffffff0;
};

} // namespace deepgen
