#include "measure/cpu/attention_cases.h"

#include "measure/values/stored_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace deepgen {
namespace {

constexpr double kMostProducts = 3e8; ///< of a case's reference; of more, a sample of its rows is compared

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

void add_lengths(CaseList& l, const Attention& p) {
  AttentionCase& packed = l.add("packed entries", 5, 33, 61);
  packed.shape.query_counts = l.counts({5, 0, 33, 1, 17}, p.queries);
  packed.shape.key_counts = l.counts({9, 4, 0, 1, 61}, p.keys);
  AttentionCase& heads = l.add("packed entries, heads first", 3, 40, 70);
  heads.shape.query_counts = l.counts({40, 3, 8}, p.queries);
  heads.shape.key_counts = l.counts({2, 70, 33}, p.keys);
  heads.shape.by_head = true, heads.shape.gap = 1, heads.misaligned = true, heads.cut = GridCut::entries;
  // What is behind the keys that count is no number.
  AttentionCase& cache = l.add("a cache of keys", 4, 3, 150);
  cache.shape.keys_used = l.counts({0, 7, 150, 65}, p.keys);
  AttentionCase& ragged = l.add("packed queries of a cache", 4, 11, 96);
  ragged.shape.query_counts = l.counts({1, 11, 0, 4}, p.queries);
  ragged.shape.keys_used = l.counts({64, 96, 3, 1}, p.keys), ragged.cut = GridCut::rows;
}

std::string place(const AttentionCase& c, const char* operand, int64_t entry, int64_t token, int64_t head) {
  return std::string(operand) + " of entry " + std::to_string(entry) + ", token " + std::to_string(token) +
         ", head " + std::to_string(head) + " (" + std::to_string(c.shape.queries) + " queries, " +
         std::to_string(c.shape.keys) + " keys at most)";
}

std::string number_of(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

View view_of(const TokenLayout& layout) {
  View v = View::dense(std::max<int64_t>(1, layout.rows()), layout.columns(), 1);
  v.ld = layout.ld();
  return v;
}

} // namespace

std::vector<AttentionCase> cases_for(const Attention& p) {
  CaseList l(p);
  l.add("as tuned", p.at_batch, p.at_queries, p.at_keys);
  add_sizes(l);
  if (p.mask == AttentionMask::window) add_windows(l);
  if (p.varlen) add_lengths(l, p);
  if (p.softcap)
    for (double cap : {2.0, 30.0}) l.add("capped scores", 1, 21, 83).shape.softcap = cap;
  return std::move(l.list);
}

double case_bytes(const Attention& p) {
  double bytes = 0;
  for (const AttentionCase& c : cases_for(p)) {
    const double rows = double(c.shape.batch) * double(c.shape.queries) * double(p.heads),
                 keys = double(c.shape.batch) * double(c.shape.keys) * double(p.kv_heads);
    bytes += 32 * (rows + keys) * double(p.head_dim + p.value_dim);
  }
  return 2 * bytes;
}

AttentionCases::Prepared::Prepared(const Attention& p, const AttentionCase& c, uint64_t seed)
    : what(c), inputs(p, c.shape, seed), q("Q", p.q, view_of(inputs.q_layout), c.guard, c.misaligned),
      key("K", p.kv, view_of(inputs.key_layout), c.guard, c.misaligned),
      value("V", p.kv, view_of(inputs.value_layout), c.guard, c.misaligned),
      out("out", p.out, view_of(inputs.out_layout), c.guard, c.misaligned),
      lse("lse", Type::f32, View::dense(1, std::max<int64_t>(1, p.lse ? inputs.lse_count(p) : 1), 1), c.guard,
          false) {
  q.fill(inputs.q.data()), key.fill(inputs.key.data()), value.fill(inputs.value.data());
  for (int64_t b = 0; b < c.shape.batch && !c.shape.keys_used.empty(); ++b)
    for (int64_t j = c.shape.keys_of(b);
         j < (c.shape.key_counts.empty() ? c.shape.keys : c.shape.key_counts[size_t(b)]); ++j)
      for (int64_t g = 0; g < p.kv_heads; ++g)
        for (auto [matrix, layout, columns] :
             {std::tuple{&key, &inputs.key_layout, p.head_dim}, {&value, &inputs.value_layout, p.value_dim}})
          std::memset(matrix->row(0, layout->row(b, j, g)) + layout->column(g) * size_of(p.kv), 0xff,
                      size_t(columns * size_of(p.kv)));
  q.make_read_only(), key.make_read_only(), value.make_read_only();
  call.q = q.data(), call.key = key.data(), call.value = value.data(), call.out = out.data();
  if (p.lse) call.lse = reinterpret_cast<float*>(lse.data());
  if (p.sink) call.sink = inputs.sink.data();
  if (!inputs.query_offsets.empty()) call.query_offsets = inputs.query_offsets.data();
  if (!inputs.key_offsets.empty()) call.key_offsets = inputs.key_offsets.data();
  if (!what.shape.keys_used.empty()) call.keys_used = what.shape.keys_used.data();
  call.q_layout = &inputs.q_layout, call.key_layout = &inputs.key_layout;
  call.value_layout = &inputs.value_layout, call.out_layout = &inputs.out_layout;
  call.shape = &what.shape;
}

AttentionCases::AttentionCases(const Attention& p, uint64_t seed) : problem_(p) {
  for (const AttentionCase& c : cases_for(p)) {
    cases_.push_back(std::make_unique<Prepared>(p, c, seed));
    choose_rows(*cases_.back(), seed);
  }
}

/// All rows, or the last one of each head and entry and a seeded choice of others.
void AttentionCases::choose_rows(Prepared& x, uint64_t seed) const {
  const Attention& p = problem_;
  const AttentionReference reference(p, x.inputs);
  const double all = double(x.what.shape.batch) * double(x.what.shape.queries) * double(p.heads);
  const double products = all * double(x.what.shape.keys) * double(p.head_dim + 2 * p.value_dim);
  const double share = kMostProducts / std::max(1.0, products);
  uint64_t number = 0;
  for (int64_t b = 0; b < x.what.shape.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t t = 0; t < x.what.shape.queries_of(b); ++t, ++number)
        if (share >= 1 || t + 1 == x.what.shape.queries_of(b) ||
            std::fabs(uniform(seed + 17, number)) < share)
          x.rows.push_back({b, t, h, reference.row(b, t, h)});
}

Verdict AttentionCases::run(Prepared& x, const LoadedKernel& kernel, int64_t workspace_bytes) const {
  GuardedWorkspace workspace(workspace_bytes);
  AttentionCall call = x.call;
  call.workspace = workspace.data();
  x.out.poison(), x.lse.poison();
  const SlotValues values = values_of(problem_, call);
  for (const TileRanges& range : cut_ranges(kernel.full_range(values), x.what.cut))
    kernel.call(values, range);
  for (const GuardedMatrix* written : {&x.out, &x.lse})
    if (std::string damage = written->damage(); !damage.empty())
      return {"out_of_bounds", std::string(written == &x.out ? "out: " : "lse: ") + damage, 0};
  if (std::string damage = workspace.damage(); !damage.empty())
    return {"out_of_bounds", "workspace: " + damage, 0};
  if (Verdict verdict = check_finite(x); verdict.status != "ok") return verdict;
  return compare(x);
}

/// All that is written is a number, compared or not.
Verdict AttentionCases::check_finite(const Prepared& x) const {
  const TokenLayout& layout = x.inputs.out_layout;
  for (int64_t r = 0; r < layout.rows(); ++r)
    for (int64_t c = 0; c < layout.columns(); ++c)
      if (const double found = decoded(problem_.out, x.out.row(0, r), c); !std::isfinite(found))
        return {"wrong",
                "out, row " + std::to_string(r) + " in memory, column " + std::to_string(c) + ": " +
                    number_of(found),
                INFINITY};
  return {};
}

Verdict AttentionCases::compare(const Prepared& x) const {
  const Attention& p = problem_;
  Verdict worst;
  const auto note = [&](double error, const char* operand, const Row& row, double found, double expected) {
    if (error <= worst.error) return;
    worst.error = error;
    if (error > 1)
      worst.status = "wrong", worst.detail = place(x.what, operand, row.entry, row.token, row.head) + ": " +
                                             number_of(found) + ", expected " + number_of(expected);
  };
  for (const Row& row : x.rows) {
    const TokenLayout& layout = x.inputs.out_layout;
    const char* data = x.out.row(0, layout.row(row.entry, row.token, row.head));
    for (int64_t d = 0; d < p.value_dim; ++d) {
      const double found = decoded(p.out, data, layout.column(row.head) + d);
      note(row.expected.error_of_out(p, d, found), "out", row, found, row.expected.value[size_t(d)]);
    }
    if (!p.lse) continue;
    const double found =
        decoded(Type::f32, x.lse.data(), x.inputs.lse_index(p, row.entry, row.token, row.head));
    note(row.expected.error_of_lse(found), "lse", row, found, row.expected.lse);
  }
  return worst;
}

Verdict AttentionCases::verify(const LoadedKernel& kernel, int64_t workspace,
                               const std::function<void(const std::string&)>& before) {
  const auto name_of = [](const auto& prepared) { return prepared->what.name; };
  return verify_in_turn(problem_, cases_, name_of, [&](const auto& prepared) {
    before(prepared->what.name);
    return run(*prepared, kernel, workspace);
  });
}

} // namespace deepgen
