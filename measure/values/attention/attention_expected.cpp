#include "measure/values/attention/attention_expected.h"

#include "measure/values/attention/attention_products.h"
#include "measure/values/stored_values.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace deepgen {
namespace {

constexpr double kAttentionUnit = 0x1p-24;
constexpr double kNarrowUnit = 0x1p-14;                             ///< of sums of 8-bit floats
constexpr double kNarrowSteps = 10;                                 ///< 8 + sqrt(256) / 8, of a block of keys
constexpr int64_t kMostScores = int64_t(1) << 21, kFewestRows = 16; ///< of a chunk of rows, that are held

/// Keys that whole panels have room for, at least one.
int64_t in_panels(int64_t keys) {
  return std::max<int64_t>(1, (keys + panel_keys - 1) / panel_keys) * panel_keys;
}

double key_norm(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

/// Elements that a kernel may take for zeros.
bool is_lost(double x) { return x != 0 && std::fabs(x) < 0x1p-14; }

double lost_norm(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += is_lost(x[i]) ? x[i] * x[i] : 0;
  return std::sqrt(sum);
}

double in_units(double found, double expected, double tolerance) {
  if (found == expected) return 0;
  const double e = std::fabs(found - expected) / tolerance;
  return std::isnan(e) ? INFINITY : e;
}

} // namespace

double ExpectedAttention::error_of_out(Type out, int64_t d, double found) const {
  const double y = value[size_t(d)], dy = tolerance[size_t(d)];
  const double half = out == Type::f16    ? 0x1p-11
                      : out == Type::bf16 ? 0x1p-8
                      : out == Type::e4m3 ? 0x1p-4
                                          : kAttentionUnit;
  const double smallest = out == Type::f16 ? 0x1p-24 : out == Type::e4m3 ? 0x1p-10 : FLT_MIN;
  return in_units(found, y, dy == 0 && y == 0 ? 0 : dy + half * (std::fabs(y) + dy) + smallest);
}

double ExpectedAttention::error_of_lse(double found) const { return in_units(found, lse, lse_tolerance); }

/// MI200: MFMA "flush subnormal input/output data to zero" (MIOpen's and PyTorch's notes).
AttentionArithmetic AttentionArithmetic::of(const Attention& p, const std::string& target) {
  return {p.kv, target == "gfx90a" && p.kv == Type::f16};
}

AttentionReference::AttentionReference(const Attention& p, const AttentionInputs& in, AttentionArithmetic how)
    : p_(p), in_(in), scale_(double(float(in.shape.scale_of(p)))), flushes_(how.flushes) {
  dot_ = (8 + 4 * std::sqrt(double(p.head_dim))) * kAttentionUnit;
  if (how.weights == Type::bf16) weight_unit_ = 0x1p-8;
  if (how.weights == Type::f16) weight_unit_ = 0x1p-11, smallest_weight_ = 0x1p-25;
  if (how.weights == Type::e4m3) {
    dot_ = (8 + std::sqrt(double(p.head_dim)) / 8) * kNarrowUnit;
    weight_unit_ = 0x1p-4 + kNarrowSteps * kNarrowUnit;
    smallest_weight_ = std::ldexp(0x1p-10, -how.greatest_weight); // half of the least number
  }
}

std::pair<int64_t, int64_t> AttentionReference::seen(int64_t entry, int64_t token) const {
  const AttentionShape& s = in_.shape;
  const int64_t keys = s.keys_of(entry), own = token + keys - s.queries_of(entry);
  const auto clamped = [&](int64_t x) { return std::clamp<int64_t>(x, 0, keys); };
  switch (p_.mask) {
  case AttentionMask::none:
    break;
  case AttentionMask::causal:
    return {0, clamped(own + 1)};
  case AttentionMask::causal_top_left:
    return {0, clamped(token + 1)};
  case AttentionMask::window:
    return {s.left < 0 ? 0 : std::max<int64_t>(0, own - s.left),
            s.right < 0 ? keys : clamped(own + s.right + 1)};
  }
  return {0, keys};
}

/// Some rows of an entry and of one head of K and V: all keys pass by once for their greatest scores, and
/// once for their values. Scores are held for a stretch of keys; with more keys than that they are computed
/// twice, so that memory does not grow with keys.
class AttentionReference::Chunk {
public:
  Chunk(const AttentionReference& r, int64_t entry, int64_t g, const Row* first, int64_t count)
      : r_(r), p_(r.p_), in_(r.in_), entry_(entry), g_(g), keys_(in_.shape.keys_of(entry)),
        stretch_(stretch_of(keys_, count)), value_ld_(padded(p_.value_dim)) {
    for (int64_t i = 0; i < count; ++i) add(first[i]);
  }

  std::vector<ExpectedAttention> expected() {
    if (p_.sink)
      for (Line& line : lines_) line.most = double(in_.sink[size_t(line.head)]);
    for (int64_t first = 0; first < keys_; first += stretch_) take_scores(first);
    for (Line& line : lines_) begin(line);
    for (int64_t first = 0; first < keys_; first += stretch_) {
      if (stretch_ < keys_) take_scores(first); // else they are still there
      weigh(first);
    }
    std::vector<ExpectedAttention> out;
    for (Line& line : lines_) out.push_back(end(line));
    return out;
  }

private:
  struct Line {
    int64_t head, token, from, to;
    std::vector<double> q, score, value, tolerance;
    double norm = 0, lost = 0, most = -INFINITY, sum = 0, sum_error = 0;
    double bias = 0; ///< the greatest magnitude
    int64_t seen() const { return std::max<int64_t>(0, to - from); }
  };

  static int64_t stretch_of(int64_t keys, int64_t rows) {
    return std::min(in_panels(keys), std::max<int64_t>(1, kMostScores / rows / panel_keys) * panel_keys);
  }
  static int64_t padded(int64_t n) { return (n + value_step - 1) / value_step * value_step; }

  void add(const Row& row) {
    const auto [from, to] = r_.seen(entry_, row.token);
    Line line{row.head, row.token, from, to, std::vector<double>(size_t(p_.head_dim)), {}, {}, {}};
    const TokenLayout& layout = in_.q_layout;
    decode(p_.q, in_.q.data(),
           layout.row(entry_, row.token, row.head) * layout.columns() + layout.column(row.head), p_.head_dim,
           line.q.data());
    line.norm = key_norm(line.q.data(), p_.head_dim);
    if (r_.flushes_) line.lost = lost_norm(line.q.data(), p_.head_dim);
    line.score.assign(size_t(stretch_), 0);
    line.value.assign(size_t(value_ld_), 0), line.tolerance.assign(size_t(value_ld_), 0);
    lines_.push_back(std::move(line));
  }

  bool any_sees(int64_t first) const {
    return std::ranges::any_of(
        lines_, [&](const Line& x) { return x.from < x.to && x.from < first + panel_keys && x.to > first; });
  }

  void key(const PageBuffer& buffer, const TokenLayout& layout, int64_t token, int64_t columns,
           double* to) const {
    decode(p_.kv, buffer.data(), layout.row(entry_, token, g_) * layout.columns() + layout.column(g_),
           columns, to);
  }

  int64_t end_of(int64_t stretch) const { return std::min(stretch + stretch_, keys_); }

  void products(int64_t stretch) {
    std::vector<double> panel(size_t(panel_keys * p_.head_dim), 0), row(size_t(p_.head_dim));
    norms_.assign(size_t(stretch_), 0), lost_.assign(size_t(stretch_), 0);
    for (int64_t first = stretch; first < end_of(stretch); first += panel_keys) {
      if (!any_sees(first)) continue;
      for (int64_t j = 0; j < std::min(panel_keys, keys_ - first); ++j) {
        key(in_.key, in_.key_layout, first + j, p_.head_dim, row.data());
        norms_[size_t(first + j - stretch)] = key_norm(row.data(), p_.head_dim);
        if (r_.flushes_) lost_[size_t(first + j - stretch)] = lost_norm(row.data(), p_.head_dim);
        for (int64_t d = 0; d < p_.head_dim; ++d) panel[size_t(d * panel_keys + j)] = row[size_t(d)];
      }
      for (Line& line : lines_)
        products_with_panel(line.q.data(), panel.data(), p_.head_dim, line.score.data() + first - stretch);
    }
  }

  void add_bias(Line& line, int64_t j, double& score) const {
    const BiasLayout& layout = in_.bias_layout;
    double bias =
        decoded(*p_.bias, in_.bias.data(), layout.row(entry_, line.head, line.token) * layout.columns() + j);
    if (std::fabs(bias) > most_bias) bias = std::copysign(INFINITY, bias);
    score += bias;
    if (std::isfinite(bias)) line.bias = std::max(line.bias, std::fabs(bias));
  }

  /// Scores of a stretch as the softmax takes them, and their greatest so far.
  void take_scores(int64_t stretch) {
    const double softcap = in_.shape.softcap;
    products(stretch);
    for (Line& line : lines_)
      for (int64_t j = std::max(line.from, stretch); j < std::min(line.to, end_of(stretch)); ++j) {
        double& s = line.score[size_t(j - stretch)];
        s *= r_.scale_;
        if (softcap != 0) s = softcap * std::tanh(s / softcap);
        if (p_.bias) add_bias(line, j, s);
        line.most = std::max(line.most, s);
      }
  }

  void begin(Line& line) const {
    if (p_.sink) line.sum = std::exp(double(in_.sink[size_t(line.head)]) - line.most);
    line.sum_error = line.sum * 8 * kAttentionUnit;
  }

  void weigh(int64_t stretch) {
    std::vector<double> values(size_t(panel_keys * value_ld_), 0);
    for (int64_t first = stretch; first < end_of(stretch); first += panel_keys) {
      if (!any_sees(first)) continue;
      const int64_t count = std::min(panel_keys, keys_ - first);
      for (int64_t j = 0; j < count; ++j)
        key(in_.value, in_.value_layout, first + j, p_.value_dim, values.data() + j * value_ld_);
      for (Line& line : lines_) weigh(line, stretch, first, count, values.data());
    }
  }

  void weigh(Line& line, int64_t stretch, int64_t first, int64_t count, const double* values) const {
    const int64_t from = std::max(line.from, first), to = std::min(line.to, first + count);
    if (from >= to) return;
    double weights[panel_keys], errors[panel_keys];
    const double dot = r_.dot_ * std::fabs(r_.scale_) * line.norm,
                 cap = 8 * kAttentionUnit * in_.shape.softcap,
                 sums = (8 + std::sqrt(double(line.seen()))) * kAttentionUnit + 4 * kAttentionUnit;
    for (int64_t j = from; j < to; ++j) {
      const double s = line.score[size_t(j - stretch)], weight = std::exp(s - line.most);
      weights[j - from] = errors[j - from] = 0;
      if (s == -INFINITY) continue; // a bias hides it
      const double norm = norms_[size_t(j - stretch)], lost = lost_[size_t(j - stretch)];
      const double relative = dot * norm + cap +
                              std::fabs(r_.scale_) * (line.lost * norm + line.norm * lost) +
                              2 * kAttentionUnit * (std::fabs(s) + std::fabs(line.most) + line.bias) + sums;
      line.sum += weight, line.sum_error += weight * relative;
      weights[j - from] = weight;
      errors[j - from] = weight * (relative + r_.weight_unit_) + r_.smallest_weight_;
    }
    add_weighed(weights, errors, to - from, values + (from - first) * value_ld_, value_ld_, line.value.data(),
                line.tolerance.data());
    if (!r_.flushes_) return;
    for (int64_t j = from; j < to; ++j)
      for (int64_t d = 0; d < p_.value_dim; ++d)
        if (const double v = values[(j - first) * value_ld_ + d]; is_lost(v))
          line.tolerance[size_t(d)] += weights[j - from] * std::fabs(v);
  }

  ExpectedAttention end(Line& line) const {
    ExpectedAttention out;
    out.value = std::move(line.value), out.tolerance = std::move(line.tolerance);
    out.value.resize(size_t(p_.value_dim)), out.tolerance.resize(size_t(p_.value_dim));
    out.lse = line.most;
    if (line.most == -INFINITY) return out;
    const double sum = line.sum;
    for (int64_t d = 0; d < p_.value_dim; ++d) {
      double &y = out.value[size_t(d)], &dy = out.tolerance[size_t(d)];
      y /= sum;
      dy = dy / sum + std::fabs(y) * (line.sum_error / sum + 4 * kAttentionUnit) +
           FLT_MIN * double(line.seen());
    }
    out.lse = line.most + std::log(sum);
    out.lse_tolerance =
        line.sum_error / sum + 8 * kAttentionUnit * (1 + std::fabs(line.most) + std::fabs(out.lse));
    return out;
  }

  const AttentionReference& r_;
  const Attention& p_;
  const AttentionInputs& in_;
  const int64_t entry_, g_, keys_, stretch_, value_ld_;
  std::vector<Line> lines_;
  std::vector<double> norms_, lost_; ///< of a stretch of keys; and of what may be lost of them
};

std::vector<ExpectedAttention> AttentionReference::rows(int64_t entry, int64_t g,
                                                        const std::vector<Row>& rows) const {
  const int64_t keys = in_panels(in_.shape.keys_of(entry));
  const int64_t step = std::max(kFewestRows, kMostScores / keys), count = int64_t(rows.size());
  std::vector<ExpectedAttention> out;
  for (int64_t first = 0; first < count; first += step)
    for (ExpectedAttention& x :
         Chunk(*this, entry, g, rows.data() + first, std::min(step, count - first)).expected())
      out.push_back(std::move(x));
  return out;
}

} // namespace deepgen
