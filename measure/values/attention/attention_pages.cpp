#include "measure/values/attention/attention_pages.h"

#include "measure/values/attention/attention_inputs.h"

#include <algorithm>
#include <numeric>

namespace deepgen {
namespace {

/// The numbers below `count` in a seeded order.
std::vector<int32_t> shuffled(int64_t count, uint64_t seed) {
  std::vector<int32_t> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  for (int64_t i = count - 1; i > 0; --i)
    std::swap(list[size_t(i)], list[size_t((uniform(seed, uint64_t(i)) + 1) / 2 * double(i + 1))]);
  return list;
}

} // namespace

AttentionPages::AttentionPages(const Attention& p, const AttentionShape& s, uint64_t seed)
    : size(p.page_size) {
  if (!p.paged()) return;
  const auto pages_of = [&](int64_t entry) { return (s.keys_of(entry) + size - 1) / size; };
  stride = (s.keys + size - 1) / size + s.table_gap;
  table.assign(size_t(s.batch * stride), nowhere);
  int64_t own = 0; // pages that some entry has for itself
  for (int64_t b = 0; b < s.batch; ++b) own += pages_of(b);
  count = own + own / 8 + 2;
  const std::vector<int32_t> order = shuffled(count, seed);
  size_t next = 0;
  for (int64_t b = 0; b < s.batch; ++b) {
    // As of prompts that begin alike.
    const int64_t shared = b > 0 && s.shared_pages ? std::min(pages_of(0), (pages_of(b) + 1) / 2) : 0;
    for (int64_t i = 0; i < pages_of(b); ++i)
      table[size_t(b * stride + i)] = i < shared ? table[size_t(i)] : order[next++];
  }
}

} // namespace deepgen
