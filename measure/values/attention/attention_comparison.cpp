#include "measure/values/attention/attention_comparison.h"

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

AttentionComparison::AttentionComparison(const Attention& p, const AttentionInputs& inputs, Type weights,
                                         double most_products, uint64_t seed)
    : problem_(p), inputs_(inputs) {
  const AttentionReference reference(p, inputs, weights);
  const AttentionShape& s = inputs.shape;
  const double all = double(s.batch) * double(s.queries) * double(p.heads);
  const double products = all * double(s.keys) * double(p.head_dim + 2 * p.value_dim);
  const double share = most_products / std::max(1.0, products);
  uint64_t number = 0;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t t = 0; t < s.queries_of(b); ++t, ++number)
        if (share >= 1 || t + 1 == s.queries_of(b) || std::fabs(uniform(seed + 17, number)) < share)
          rows_.push_back({b, t, h, reference.row(b, t, h)});
}

Verdict AttentionComparison::check_finite(const OutRow& out) const {
  const TokenLayout& layout = inputs_.out_layout;
  for (int64_t r = 0; r < layout.rows(); ++r)
    for (int64_t c = 0; c < layout.columns(); ++c)
      if (const double found = decoded(problem_.out, out(r), c); !std::isfinite(found))
        return {"wrong",
                "out, row " + std::to_string(r) + " in memory, column " + std::to_string(c) + ": " +
                    number_of(found),
                INFINITY};
  return {};
}

std::string AttentionComparison::place(const char* operand, const Row& row) const {
  return std::string(operand) + " of entry " + std::to_string(row.entry) + ", token " +
         std::to_string(row.token) + ", head " + std::to_string(row.head) + " (" +
         std::to_string(inputs_.shape.queries) + " queries, " + std::to_string(inputs_.shape.keys) +
         " keys at most)";
}

Verdict AttentionComparison::compare(const OutRow& out, const void* lse) const {
  const Attention& p = problem_;
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
      const double found = decoded(p.out, data, layout.column(row.head) + d);
      note(row.expected.error_of_out(p, d, found), "out", row, found, row.expected.value[size_t(d)]);
    }
    if (!p.lse) continue;
    const double found = decoded(Type::f32, lse, inputs_.lse_index(p, row.entry, row.token, row.head));
    note(row.expected.error_of_lse(found), "lse", row, found, row.expected.lse);
  }
  return worst;
}

} // namespace deepgen
