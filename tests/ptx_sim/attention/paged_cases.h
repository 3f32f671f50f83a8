// Calls with keys and values in pages that ends of entries make hard.
#pragma once

#include "measure/values/attention/attention_case.h"

#include <algorithm>
#include <vector>

namespace deepgen {

/// Entries that end before, at and behind ends of pages and of blocks of keys, or have none, of a cache with
/// shared pages in any order.
inline AttentionCase ends_of_entries(const Attention& p, int64_t keys_of_block) {
  AttentionCase c;
  c.name = "ends about pages and blocks of keys", c.shape.queries = 70, c.shape.keys = p.keys;
  c.shape.shared_pages = true, c.shape.table_gap = 1;
  const int64_t page = p.page_size;
  for (int64_t used : {int64_t(0), page, 2 * page - 1, 3 * page + 1, keys_of_block, 2 * keys_of_block - 7,
                       2 * keys_of_block + 8, int64_t(1), p.keys})
    c.shape.keys_used.push_back(int32_t(std::min(used, p.keys)));
  c.shape.batch = int64_t(c.shape.keys_used.size());
  if (p.varlen) c.shape.query_counts = {70, 0, 33, 64, 1, 65, 17, 70, 3};
  return c;
}

inline std::vector<AttentionCase> paged_cases(const Attention& p, int64_t keys_of_block) {
  std::vector<AttentionCase> cases = cases_for(p);
  cases.push_back(ends_of_entries(p, keys_of_block));
  return cases;
}

} // namespace deepgen
