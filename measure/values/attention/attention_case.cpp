#include "measure/values/attention/attention_case.h"

#include <algorithm>
#include <cstring>

namespace deepgen {
namespace {

/// A list of cases, cut down to what the problem's calls may be.
class CaseList {
public:
  explicit CaseList(const Attention& p) : p_(p) {}

  AttentionCase& add(const char* name, int64_t batch, int64_t queries, int64_t keys) {
    AttentionCase c;
    c.name = name, c.shape.batch = batch;
    c.shape.queries = std::min(queries, p_.queries), c.shape.keys = std::min(keys, p_.keys);
    list.push_back(c);
    return list.back();
  }
  std::vector<int32_t> counts(std::initializer_list<int64_t> values, int64_t most) const {
    std::vector<int32_t> out;
    for (int64_t x : values) out.push_back(int32_t(std::min(x, most)));
    return out;
  }
  std::vector<AttentionCase> list;

private:
  const Attention& p_;
};

void add_sizes(CaseList& l) {
  l.add("one query, one key", 1, 1, 1).guard = Guard::in_front;
  l.add("more queries than keys", 1, 45, 17).cut = GridCut::rows;
  l.add("no keys", 2, 5, 0);
  l.add("one query", 3, 1, 131).cut = GridCut::entries;
  l.add("a negative scale", 1, 19, 71).shape.scale = -0.25;
  l.add("sizes about a block's", 1, 97, 65).cut = GridCut::columns;
  l.add("several blocks of keys", 1, 19, 517).guard = Guard::in_front;
  AttentionCase& heads = l.add("heads before tokens, padded", 2, 37, 53);
  heads.shape.by_head = true, heads.shape.gap = 3, heads.misaligned = true;
  AttentionCase& wide = l.add("scores far apart, padded", 1, 33, 129);
  wide.shape.magnitude = 400, wide.shape.gap = 5, wide.misaligned = true, wide.cut = GridCut::rows;
}

void add_windows(CaseList& l) {
  for (auto [left, right] : {std::pair<int64_t, int64_t>{5, 0}, {-1, 3}, {0, 0}, {70, -1}, {3, 4}}) {
    AttentionCase& c = l.add("a window", 1, 61, 149);
    c.shape.left = left, c.shape.right = right;
  }
  AttentionCase& c = l.add("a window, more queries than keys", 2, 67, 9);
  c.shape.left = 3, c.shape.right = 1;
}

void add_packed(CaseList& l, const Attention& p) {
  AttentionCase& packed = l.add("packed entries", 5, 33, 61);
  packed.shape.query_counts = l.counts({5, 0, 33, 1, 17}, p.queries);
  packed.shape.key_counts = l.counts({9, 4, 0, 1, 61}, p.keys);
  AttentionCase& heads = l.add("packed entries, heads first", 3, 40, 70);
  heads.shape.query_counts = l.counts({40, 3, 8}, p.queries);
  heads.shape.key_counts = l.counts({2, 70, 33}, p.keys);
  heads.shape.by_head = true, heads.shape.gap = 1, heads.misaligned = true, heads.cut = GridCut::entries;
}

void add_caches(CaseList& l, const Attention& p) {
  // What is behind the keys that count is no number.
  AttentionCase& cache = l.add("a cache of keys", 4, 3, 150);
  cache.shape.keys_used = l.counts({0, 7, 150, 65}, p.keys);
  if (!p.varlen) return;
  AttentionCase& ragged = l.add("packed queries of a cache", 4, 11, 96);
  ragged.shape.query_counts = l.counts({1, 11, 0, 4}, p.queries);
  ragged.shape.keys_used = l.counts({64, 96, 3, 1}, p.keys), ragged.cut = GridCut::rows;
}

/// Of keys that end about a page, in pages that entries share, of a table with more than a call's pages.
void add_pages(CaseList& l, const Attention& p) {
  const int64_t size = std::min<int64_t>(p.page_size, 128);
  AttentionCase& shared = l.add("pages that entries share", 4, 5, 3 * size + 1);
  shared.shape.shared_pages = true, shared.shape.table_gap = 2;
  shared.shape.keys_used = l.counts({3 * size + 1, 2 * size, size - 1, size + 1}, p.keys);
  AttentionCase& heads = l.add("pages with heads before tokens, padded", 2, 9, 2 * size + 3);
  heads.shape.by_head = true, heads.shape.gap = 3, heads.shape.table_gap = 1, heads.misaligned = true;
  heads.shape.shared_pages = true, heads.cut = GridCut::entries;
  l.add("a whole page", 1, 3, size).guard = Guard::in_front;
}

/// What is read as one for all.
void add_biases(CaseList& l) {
  AttentionCase& heads = l.add("a bias of all heads, padded", 2, 35, 77);
  heads.shape.one_bias_of_heads = true, heads.shape.gap = 1, heads.misaligned = true;
  AttentionCase& keys = l.add("a bias of keys alone", 3, 18, 67);
  keys.shape.one_bias_of_entries = keys.shape.one_bias_of_heads = keys.shape.one_bias_of_queries = true;
  keys.guard = Guard::in_front;
}

} // namespace

std::vector<AttentionCase> cases_for(const Attention& p) {
  CaseList l(p);
  std::vector<Attention> tuned;
  for (const Sizes& call : p.calls)
    if (p.ranged()) tuned.push_back(p.at(call));
  if (tuned.empty()) tuned = {p};
  for (const Attention& one : tuned) l.list.push_back({"as tuned", tuned_shape(one)});
  add_sizes(l);
  if (p.mask == AttentionMask::window) add_windows(l);
  if (p.varlen && !p.paged()) add_packed(l, p);
  if (p.varlen || p.paged()) add_caches(l, p);
  if (p.paged()) add_pages(l, p);
  if (p.softcap)
    for (double cap : {2.0, 30.0}) l.add("capped scores", 1, 21, 83).shape.softcap = cap;
  if (p.bias) add_biases(l);
  return std::move(l.list);
}

double case_bytes(const Attention& p) {
  double bytes = 0;
  for (const AttentionCase& c : cases_for(p)) {
    const double rows = double(c.shape.batch) * double(c.shape.queries) * double(p.heads),
                 keys = double(c.shape.batch) * double(c.shape.keys + 4 * p.page_size) * double(p.kv_heads);
    bytes += 32 * (rows + keys) * double(p.head_dim + p.value_dim);
    if (p.bias) bytes += 16 * rows * double(c.shape.keys);
  }
  return 2 * bytes;
}

std::vector<char> stored(Type type, const TokenLayout& layout, const PageBuffer& dense) {
  const auto bytes = size_t(layout.columns() * size_of(type)), pitch = size_t(layout.ld() * size_of(type));
  const auto rows = size_t(layout.rows());
  std::vector<char> out(rows ? (rows - 1) * pitch + bytes : 0, char(0xff));
  for (size_t r = 0; r < rows; ++r) std::memcpy(out.data() + r * pitch, dense.data() + r * bytes, bytes);
  return out;
}

void poison_unused(Type type, const TokenLayout& layout, const AttentionShape& s, int64_t heads,
                   int64_t dimension, char* stored) {
  if (s.keys_used.empty() && !layout.paged()) return;
  const int64_t bytes = dimension * size_of(type), in_row = layout.columns() / dimension; // heads of a row
  std::vector<bool> used(size_t(layout.rows()));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t j = 0; j < s.keys_of(b); ++j)
      for (int64_t g = 0; g < heads; g += in_row) used[size_t(layout.row(b, j, g))] = true;
  for (int64_t r = 0; r < layout.rows(); ++r)
    if (!used[size_t(r)]) std::memset(stored + r * layout.ld() * size_of(type), 0xff, size_t(in_row * bytes));
}

} // namespace deepgen
