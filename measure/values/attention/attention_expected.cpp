#include "measure/values/attention/attention_expected.h"

#include "measure/values/stored_values.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace deepgen {
namespace {

constexpr double kUnit = 0x1p-24;

std::vector<double> as_numbers(Type type, const PageBuffer& buffer, const TokenLayout& layout) {
  std::vector<double> list(size_t(layout.rows() * layout.columns()));
  for (size_t i = 0; i < list.size(); ++i) list[i] = decoded(type, buffer.data(), int64_t(i));
  return list;
}

const double* at(const std::vector<double>& list, const TokenLayout& layout, int64_t entry, int64_t token,
                 int64_t head) {
  return list.data() + layout.row(entry, token, head) * layout.columns() + layout.column(head);
}

double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

double in_units(double found, double expected, double tolerance) {
  if (found == expected) return 0;
  const double e = std::fabs(found - expected) / tolerance;
  return std::isnan(e) ? INFINITY : e;
}

} // namespace

double ExpectedAttention::error_of_out(const Attention& p, int64_t d, double found) const {
  const double y = value[size_t(d)], dy = tolerance[size_t(d)];
  const double half = p.out == Type::f16 ? 0x1p-11 : p.out == Type::bf16 ? 0x1p-8 : kUnit;
  const double smallest = p.out == Type::f16 ? 0x1p-24 : FLT_MIN;
  return in_units(found, y, dy == 0 && y == 0 ? 0 : dy + half * (std::fabs(y) + dy) + smallest);
}

double ExpectedAttention::error_of_lse(double found) const { return in_units(found, lse, lse_tolerance); }

AttentionReference::AttentionReference(const Attention& p, const AttentionInputs& in, Type weights)
    : p_(p), in_(in), scale_(double(float(in.shape.scale_of(p)))), q_(as_numbers(p.q, in.q, in.q_layout)),
      k_(as_numbers(p.kv, in.key, in.key_layout)), v_(as_numbers(p.kv, in.value, in.value_layout)) {
  if (weights == Type::bf16) weight_unit_ = 0x1p-8;
  if (weights == Type::f16) weight_unit_ = 0x1p-11, smallest_weight_ = 0x1p-25;
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

ExpectedAttention AttentionReference::row(int64_t entry, int64_t token, int64_t head) const {
  const auto [from, to] = seen(entry, token);
  const int64_t g = head / p_.group(), count = std::max<int64_t>(0, to - from);
  const double* q = at(q_, in_.q_layout, entry, token, head);
  const double norm = std::sqrt(dot(q, q, p_.head_dim)), softcap = in_.shape.softcap;
  std::vector<double> score(size_t(count), 0), error(size_t(count), 0);
  double most = p_.sink ? double(in_.sink[size_t(head)]) : -INFINITY;
  for (int64_t j = 0; j < count; ++j) {
    const double* k = at(k_, in_.key_layout, entry, from + j, g);
    double s = scale_ * dot(q, k, p_.head_dim);
    double ds = (8 + 4 * std::sqrt(double(p_.head_dim))) * kUnit * std::fabs(scale_) * norm *
                std::sqrt(dot(k, k, p_.head_dim));
    if (softcap != 0) s = softcap * std::tanh(s / softcap), ds += 8 * kUnit * softcap;
    score[size_t(j)] = s, error[size_t(j)] = ds, most = std::max(most, s);
  }
  ExpectedAttention out;
  out.value.assign(size_t(p_.value_dim), 0), out.tolerance.assign(size_t(p_.value_dim), 0);
  out.lse = most;
  if (most == -INFINITY) return out;
  const double sums = (8 + std::sqrt(double(count))) * kUnit;
  double sum = p_.sink ? std::exp(double(in_.sink[size_t(head)]) - most) : 0, sum_error = sum * 8 * kUnit;
  for (int64_t j = 0; j < count; ++j) {
    const double s = score[size_t(j)], weight = std::exp(s - most);
    const double relative =
        error[size_t(j)] + 2 * kUnit * (std::fabs(s) + std::fabs(most)) + 4 * kUnit + sums;
    sum += weight, sum_error += weight * relative;
    const double* v = at(v_, in_.value_layout, entry, from + j, g);
    for (int64_t d = 0; d < p_.value_dim; ++d) {
      out.value[size_t(d)] += weight * v[d];
      out.tolerance[size_t(d)] += (weight * (relative + weight_unit_) + smallest_weight_) * std::fabs(v[d]);
    }
  }
  for (int64_t d = 0; d < p_.value_dim; ++d) {
    double &y = out.value[size_t(d)], &dy = out.tolerance[size_t(d)];
    y /= sum, dy = dy / sum + std::fabs(y) * (sum_error / sum + 4 * kUnit) + FLT_MIN * count;
  }
  out.lse = most + std::log(sum);
  out.lse_tolerance = sum_error / sum + 8 * kUnit * (1 + std::fabs(most) + std::fabs(out.lse));
  return out;
}

} // namespace deepgen
