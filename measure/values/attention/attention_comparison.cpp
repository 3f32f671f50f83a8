#include "measure/values/attention/attention_comparison.h"

#include "measure/values/attention/host_threads.h"
#include "measure/values/stored_values.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

std::string number_of(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

} // namespace

std::vector<int64_t> compared_tokens(int64_t queries, int64_t entry, int64_t head, double share,
                                     uint64_t seed) {
  std::vector<int64_t> list;
  const uint64_t numbers = (uint64_t(entry) * most_attention_heads + uint64_t(head)) * most_tokens;
  for (int64_t tile = 0; tile * sampled_tile < queries; ++tile) {
    const int64_t first = tile * sampled_tile, last = std::min(first + sampled_tile, queries) - 1;
    const int64_t within =
        first + int64_t((uniform(seed + 18, numbers + uint64_t(tile)) + 1) / 2 * double(last - first + 1));
    const int64_t always[] = {first, last, within};
    const int64_t own = always[(tile + head + entry) % 3];
    for (int64_t t = first; t <= last; ++t)
      if (share >= 1 || t == 0 || t + 1 == queries || t == own ||
          std::fabs(uniform(seed + 17, numbers + uint64_t(t))) < share)
        list.push_back(t);
  }
  return list;
}

AttentionComparison::AttentionComparison(const Attention& p, const AttentionInputs& inputs,
                                         AttentionArithmetic how, double most_products, uint64_t seed)
    : problem_(p), inputs_(inputs) {
  const AttentionReference reference(p, inputs, how);
  const AttentionShape& s = inputs.shape;
  const double all = double(s.batch) * double(s.queries) * double(p.heads);
  const double products = all * double(s.keys) * double(p.head_dim + 2 * p.value_dim);
  const double share = most_products / std::max(1.0, products);
  std::vector<std::vector<Row>> parts(size_t(s.batch * p.kv_heads));
  on_host_threads(int64_t(parts.size()), [&](int64_t i) {
    parts[size_t(i)] = expected(reference, i / p.kv_heads, i % p.kv_heads, share, seed);
  });
  for (std::vector<Row>& part : parts)
    for (Row& row : part) rows_.push_back(std::move(row));
}

/// Of an entry, the rows of the heads that share one of K and V.
std::vector<AttentionComparison::Row> AttentionComparison::expected(const AttentionReference& reference,
                                                                    int64_t entry, int64_t g, double share,
                                                                    uint64_t seed) const {
  std::vector<AttentionReference::Row> places;
  for (int64_t h = g * problem_.group(); h < (g + 1) * problem_.group(); ++h)
    for (int64_t t : compared_tokens(inputs_.shape.queries_of(entry), entry, h, share, seed))
      places.push_back({t, h});
  std::vector<ExpectedAttention> rows = reference.rows(entry, g, places);
  std::vector<Row> out;
  for (size_t i = 0; i < rows.size(); ++i)
    out.push_back({entry, places[i].token, places[i].head, std::move(rows[i])});
  return out;
}

/// Of inputs whose values are in [-1, 1): weights that are rounded may sum up to a little more than 1.
Verdict AttentionComparison::check_finite(const OutRow& out, std::optional<Type> of) const {
  const Type type = of.value_or(problem_.out);
  const double most = problem_.kv == Type::e4m3 ? 1 + 1.0 / 8 : 1 + 1.0 / 64;
  const TokenLayout& layout = inputs_.out_layout;
  for (int64_t r = 0; r < layout.rows(); ++r)
    if (const int64_t c = first_beyond(type, out(r), layout.columns(), most); c >= 0)
      return {"wrong",
              "out, row " + std::to_string(r) + " in memory, column " + std::to_string(c) + ": " +
                  number_of(decoded(type, out(r), c)) + ", and no value is above 1",
              INFINITY};
  return {};
}

std::string AttentionComparison::place(const char* operand, const Row& row) const {
  return std::string(operand) + " of entry " + std::to_string(row.entry) + ", token " +
         std::to_string(row.token) + ", head " + std::to_string(row.head) + " (" +
         std::to_string(inputs_.shape.queries) + " queries, " + std::to_string(inputs_.shape.keys) +
         " keys at most)";
}

Verdict AttentionComparison::compare(const OutRow& out, const void* lse, std::optional<Type> of) const {
  const Attention& p = problem_;
  const Type type = of.value_or(p.out);
  Verdict worst;
  const auto note = [&](double error, const char* operand, const Row& row, double found, double expected) {
    if (error <= worst.error) return;
    worst.error = error;
    if (error > 1)
      worst.status = "wrong",
      worst.detail = place(operand, row) + ": " + number_of(found) + ", expected " + number_of(expected);
  };
  for (const Row& row : rows_) {
    const TokenLayout& layout = inputs_.out_layout;
    const char* data = out(layout.row(row.entry, row.token, row.head));
    for (int64_t d = 0; d < p.value_dim; ++d) {
      const double found = decoded(type, data, layout.column(row.head) + d);
      note(row.expected.error_of_out(type, d, found), "out", row, found, row.expected.value[size_t(d)]);
    }
    if (!p.lse) continue;
    const double found = decoded(Type::f32, lse, inputs_.lse_index(p, row.entry, row.token, row.head));
    note(row.expected.error_of_lse(found), "lse", row, found, row.expected.lse);
  }
  return worst;
}

} // namespace deepgen
