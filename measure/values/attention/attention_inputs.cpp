#include "measure/values/attention/attention_inputs.h"

#include "measure/values/attention/host_threads.h"
#include "measure/values/stored_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deepgen {
namespace {

std::vector<int32_t> offsets_of(const std::vector<int32_t>& counts) {
  std::vector<int32_t> list;
  if (counts.empty()) return list;
  list.push_back(0);
  for (int32_t count : counts) list.push_back(list.back() + count);
  return list;
}

PageBuffer random_values(Type type, const TokenLayout& layout, int colour, uint64_t seed, double magnitude) {
  constexpr int64_t piece = int64_t(1) << 18;                                   // of a thread
  const int64_t count = std::max<int64_t>(1, layout.rows()) * layout.columns(); // a row where a call has none
  PageBuffer buffer(size_t(count * size_of(type)), colour, Begins::as_malloc);
  on_host_threads((count + piece - 1) / piece, [&](int64_t part) {
    for (int64_t i = part * piece; i < std::min(count, (part + 1) * piece); ++i)
      encode(type, magnitude * uniform(seed, uint64_t(i)), buffer.data(), i);
  });
  return buffer;
}

} // namespace

int64_t AttentionShape::keys_of(int64_t entry) const {
  const int64_t all = key_counts.empty() ? keys : key_counts[size_t(entry)];
  return keys_used.empty() ? all : std::min<int64_t>(all, keys_used[size_t(entry)]);
}
double AttentionShape::scale_of(const Attention& p) const {
  return scale == 0 ? 1 / std::sqrt(double(p.head_dim)) : scale;
}
std::vector<int32_t> AttentionShape::query_offsets() const { return offsets_of(query_counts); }
std::vector<int32_t> AttentionShape::key_offsets() const { return offsets_of(key_counts); }

AttentionShape tuned_shape(const Attention& p) {
  AttentionShape s;
  s.batch = p.at_batch, s.queries = p.at_queries, s.keys = p.at_keys;
  s.left = p.at_left, s.right = p.at_right;
  s.one_bias_of_entries = true;
  return s;
}

TokenLayout::TokenLayout(const AttentionShape& s, const std::vector<int32_t>& counts, int64_t tokens,
                         int64_t heads, int64_t dimension)
    : by_head_(s.by_head), tokens_(tokens), heads_(heads), dimension_(dimension), gap_(s.gap),
      total_(counts.empty() ? s.batch * tokens : std::accumulate(counts.begin(), counts.end(), int64_t(0))) {
  const std::vector<int32_t> offsets = offsets_of(counts);
  first_.assign(offsets.begin(), offsets.end());
}

TokenLayout::TokenLayout(const AttentionShape& s, const AttentionPages& pages, int64_t heads,
                         int64_t dimension)
    : TokenLayout(s, s.key_counts, s.keys, heads, dimension) {
  if (!pages.size) return;
  first_.clear(), table_ = pages.table, table_stride_ = pages.stride;
  tokens_ = pages.size, total_ = pages.count * pages.size;
}

int64_t TokenLayout::row(int64_t entry, int64_t token, int64_t head) const {
  if (table_stride_) {
    const int64_t page = table_[size_t(entry * table_stride_ + token / tokens_)], within = token % tokens_;
    return by_head_ ? (page * heads_ + head) * tokens_ + within : page * tokens_ + within;
  }
  if (packed()) return first_[size_t(entry)] + token + (by_head_ ? head * total_ : 0);
  return by_head_ ? (entry * heads_ + head) * tokens_ + token : entry * tokens_ + token;
}

AttentionInputs::AttentionInputs(const Attention& p, const AttentionShape& s, uint64_t seed)
    : shape(s), pages(p, s, 4 * seed + 7), q_layout(s, s.query_counts, s.queries, p.heads, p.head_dim),
      key_layout(s, pages, p.kv_heads, p.head_dim), value_layout(s, pages, p.kv_heads, p.value_dim),
      out_layout(s, s.query_counts, s.queries, p.heads, p.value_dim), bias_layout(p, s),
      q(random_values(p.q, q_layout, 1, 4 * seed, s.magnitude)),
      key(random_values(p.kv, key_layout, 2, 4 * seed + 1, 1)),
      value(random_values(p.kv, value_layout, 3, 4 * seed + 2, 1)),
      bias(random_bias(p, bias_layout, 4 * seed + 11, s.bias_hides)), query_offsets(s.query_offsets()),
      key_offsets(s.key_offsets()) {
  for (int64_t h = 0; h < p.heads; ++h) sink.push_back(float(4 * uniform(4 * seed + 3, uint64_t(h))));
}

int64_t AttentionInputs::lse_index(const Attention& p, int64_t entry, int64_t token, int64_t head) const {
  if (!query_offsets.empty()) return (query_offsets[size_t(entry)] + token) * p.heads + head;
  return (entry * p.heads + head) * shape.queries + token;
}

int64_t AttentionInputs::lse_count(const Attention& p) const {
  return p.heads * (query_offsets.empty() ? shape.batch * shape.queries : int64_t(query_offsets.back()));
}

SlotValues values_of(const Attention& p, const AttentionCall& x) {
  SlotValues values = {};
  const AttentionShape& s = *x.shape;
  values[DEEPGEN_ARG_M] = uint64_t(s.queries), values[DEEPGEN_ARG_N] = uint64_t(s.keys);
  values[DEEPGEN_ARG_K] = 1, values[DEEPGEN_ARG_BATCH] = uint64_t(s.batch);
  const auto put = [&](deepgen_arg slot, const void* data, deepgen_arg token, const TokenLayout& layout) {
    values[slot] = argument(data);
    values[token] = uint64_t(layout.token_stride()), values[token + 1] = uint64_t(layout.head_stride());
    values[token + 2] = uint64_t(layout.entry_stride());
  };
  put(DEEPGEN_ARG_Q, x.q, DEEPGEN_ARG_Q_TOKEN, *x.q_layout);
  put(DEEPGEN_ARG_KEY, x.key, DEEPGEN_ARG_KEY_TOKEN, *x.key_layout);
  put(DEEPGEN_ARG_VALUE, x.value, DEEPGEN_ARG_VALUE_TOKEN, *x.value_layout);
  put(DEEPGEN_ARG_OUT, x.out, DEEPGEN_ARG_OUT_TOKEN, *x.out_layout);
  values[DEEPGEN_ARG_LSE] = argument(x.lse), values[DEEPGEN_ARG_SINK] = argument(x.sink);
  if (p.bias) {
    values[DEEPGEN_ARG_BIAS] = argument(x.bias);
    values[DEEPGEN_ARG_BIAS_QUERY] = uint64_t(x.bias_layout->query_stride());
    values[DEEPGEN_ARG_BIAS_HEAD] = uint64_t(x.bias_layout->head_stride());
    values[DEEPGEN_ARG_BIAS_BATCH] = uint64_t(x.bias_layout->entry_stride());
  }
  values[DEEPGEN_ARG_LSE_TOKEN] = uint64_t(x.query_offsets ? p.heads : 1);
  values[DEEPGEN_ARG_LSE_HEAD] = uint64_t(x.query_offsets ? 1 : s.queries);
  values[DEEPGEN_ARG_LSE_BATCH] = uint64_t(x.query_offsets ? 0 : p.heads * s.queries);
  values[DEEPGEN_ARG_QUERY_OFFSETS] = argument(x.query_offsets);
  values[DEEPGEN_ARG_KEY_OFFSETS] = argument(x.key_offsets);
  values[DEEPGEN_ARG_KEYS_USED] = argument(x.keys_used);
  values[DEEPGEN_ARG_PAGE_TABLE] = argument(x.page_table);
  if (p.paged())
    values[DEEPGEN_ARG_PAGE_TABLE_STRIDE] = uint64_t((s.keys + p.page_size - 1) / p.page_size + s.table_gap);
  values[DEEPGEN_ARG_SCORE_SCALE] = argument(s.scale_of(p), Type::f32);
  values[DEEPGEN_ARG_SOFTCAP] = argument(s.softcap, Type::f32);
  values[DEEPGEN_ARG_WINDOW_LEFT] = uint64_t(s.left), values[DEEPGEN_ARG_WINDOW_RIGHT] = uint64_t(s.right);
  values[DEEPGEN_ARG_WORKSPACE] = argument(x.workspace);
  return values;
}

} // namespace deepgen
