#include "measure/values/rows_expected.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace deepgen {
namespace {

constexpr double kRoundoff = 0x1p-24;

/// Half a unit in the last place, relative, and the smallest and greatest numbers of a type.
struct RowsFormat {
  double half, smallest, most;
};
RowsFormat rows_format(Type type) {
  return type == Type::f16    ? RowsFormat{0x1p-11, 0x1p-24, 65504}
         : type == Type::bf16 ? RowsFormat{0x1p-8, FLT_MIN, 0x1.fep127}
                              : RowsFormat{kRoundoff, FLT_MIN, FLT_MAX};
}

/// In tolerances. NaN and infinities must be what is expected; beyond the type's range infinity is right.
double in_tolerances(double found, double expected, double tolerance, double most) {
  if (std::isnan(expected)) return std::isnan(found) ? 0 : INFINITY;
  if (found == expected) return 0;
  if (std::isinf(found) && std::fabs(expected) + tolerance >= most && (found > 0) == (expected > 0)) return 0;
  const double e = std::fabs(found - expected) / tolerance;
  return std::isnan(e) ? INFINITY : e;
}

/// Half the distance between neighbours of a quantised type about x.
double half_step(Type d, double x) {
  if (d == Type::i8) return 0.5;
  const int exponent = x > 0 && std::isfinite(x) ? std::ilogb(x) : -6;
  return std::ldexp(0.5, std::max(exponent, -6) - 3);
}

} // namespace

ExpectedRow::ExpectedRow(const Rows& p, const RowInputs& in) : p_(p) {
  const auto n = size_t(p.n);
  z_.resize(n), dz_.resize(n), y_.resize(n), dy_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    z_[i] = in.x[i] + (p.residual ? in.residual[i] : 0);
    dz_[i] = p.residual && std::isfinite(z_[i]) ? kRoundoff * std::fabs(z_[i]) : 0;
  }
  switch (p.kind) {
  case RowsKind::softmax:
  case RowsKind::log_softmax:
    softmax(p.kind == RowsKind::log_softmax);
    break;
  case RowsKind::layer_norm:
    layer_norm(in.epsilon);
    break;
  case RowsKind::rms_norm:
    rms_norm(in.epsilon);
    break;
  }
  for (size_t i = 0; i < n; ++i) {
    if (p.scale)
      y_[i] *= in.scale[i], dy_[i] = dy_[i] * std::fabs(in.scale[i]) + kRoundoff * std::fabs(y_[i]);
    if (p.bias) {
      dy_[i] += kRoundoff * (std::fabs(y_[i]) + std::fabs(in.bias[i]));
      y_[i] += in.bias[i];
    }
    dy_[i] += FLT_MIN;
  }
  if (p.quantised()) quantise();
}

double ExpectedRow::sum_error(double magnitude) const {
  return (8 + std::sqrt(double(p_.n))) * kRoundoff * magnitude;
}

void ExpectedRow::softmax(bool logarithm) {
  double most = -INFINITY, d_most = 0, sum = 0, d_sum = 0;
  for (size_t i = 0; i < z_.size(); ++i) {
    if (std::isnan(z_[i])) most = NAN;
    if (z_[i] > most) most = z_[i], d_most = dz_[i];
  }
  const auto relative = [&](size_t i) {
    const double t = z_[i] - most;
    return std::isfinite(t) ? dz_[i] + d_most + 2 * kRoundoff * std::fabs(t) + 4 * kRoundoff : 0;
  };
  for (size_t i = 0; i < z_.size(); ++i) {
    const double e = std::exp(z_[i] - most);
    sum += e, d_sum += e * relative(i);
  }
  const double d_share = (d_sum + sum_error(sum)) / sum;
  for (size_t i = 0; i < z_.size(); ++i) {
    const double t = z_[i] - most;
    if (logarithm) {
      y_[i] = t - std::log(sum);
      dy_[i] = dz_[i] + d_most + d_share + 4 * kRoundoff +
               kRoundoff * (std::fabs(t) + 3 * std::fabs(std::log(sum)));
      dy_[i] += kRoundoff * std::fabs(y_[i]);
      if (!std::isfinite(y_[i])) dy_[i] = 0;
    } else {
      y_[i] = std::exp(t) / sum;
      dy_[i] = y_[i] * (std::expm1(relative(i)) + d_share + 3 * kRoundoff);
    }
  }
}

void ExpectedRow::layer_norm(double epsilon) {
  const auto count = double(z_.size());
  double mean = 0, magnitude = 0, spread = 0, d_mean = 0, variance = 0;
  for (size_t i = 0; i < z_.size(); ++i) mean += z_[i], magnitude += std::fabs(z_[i]), d_mean += dz_[i];
  mean /= count, magnitude /= count, d_mean /= count;
  for (double z : z_) spread += std::fabs(z - mean), variance += (z - mean) * (z - mean);
  spread /= count, variance /= count;
  // Of the correction: its own rounding, and that of the sum that it corrects.
  d_mean += sum_error(spread) + 4 * sum_error(sum_error(magnitude));
  double d_variance = 0;
  for (size_t i = 0; i < z_.size(); ++i) {
    const double deviation = std::fabs(z_[i] - mean);
    dy_[i] = dz_[i] + d_mean + 2 * kRoundoff * deviation + sum_error(sum_error(magnitude));
    d_variance += 2 * deviation * dy_[i] + dy_[i] * dy_[i];
  }
  d_variance = d_variance / count + sum_error(variance) + std::pow(sum_error(magnitude), 2);
  const double factor = 1 / std::sqrt(variance + epsilon);
  const double least = std::max(variance + epsilon - d_variance, epsilon);
  const double d_factor = 1 / std::sqrt(least) - factor + 4 * kRoundoff * factor;
  for (size_t i = 0; i < z_.size(); ++i) {
    const double deviation = z_[i] - mean;
    y_[i] = deviation * factor;
    dy_[i] =
        dy_[i] * (factor + d_factor) + std::fabs(deviation) * d_factor + 2 * kRoundoff * std::fabs(y_[i]);
  }
}

void ExpectedRow::rms_norm(double epsilon) {
  const auto count = double(z_.size());
  double square = 0, d_square = 0;
  for (size_t i = 0; i < z_.size(); ++i) square += z_[i] * z_[i], d_square += 2 * std::fabs(z_[i]) * dz_[i];
  square /= count, d_square = d_square / count + sum_error(square);
  const double factor = 1 / std::sqrt(square + epsilon);
  // Of an infinity the factor is 0, exactly.
  const double d_factor =
      std::isfinite(square) ? factor * (0.5 * d_square / (square + epsilon) + 4 * kRoundoff) : 0;
  for (size_t i = 0; i < z_.size(); ++i) {
    y_[i] = z_[i] * factor;
    dy_[i] = dz_[i] * factor + std::fabs(z_[i]) * d_factor + kRoundoff * std::fabs(y_[i]);
  }
}

void ExpectedRow::quantise() {
  double most = 0, d_most = 0;
  bool nan = false;
  for (size_t i = 0; i < y_.size(); ++i) {
    nan |= std::isnan(y_[i]);
    most = std::max(most, std::fabs(y_[i])), d_most = std::max(d_most, dy_[i]);
  }
  if (nan) most = NAN;
  row_scale_ = most / p_.quantised_most();
  row_scale_error_ = d_most / p_.quantised_most() + 2 * kRoundoff * row_scale_;
}

double ExpectedRow::error_of_scale(double found) const {
  return in_tolerances(found, row_scale_, row_scale_error_, FLT_MAX);
}

double ExpectedRow::error_of_residual(int64_t n, double found) const {
  const RowsFormat f = rows_format(p_.x);
  const double z = z_[size_t(n)];
  return in_tolerances(found, z, (f.half + 2 * kRoundoff) * std::fabs(z) + f.smallest, f.most);
}

double ExpectedRow::error_of_d(int64_t n, double found) const {
  const double y = y_[size_t(n)], dy = dy_[size_t(n)];
  if (!p_.quantised()) {
    const RowsFormat f = rows_format(p_.d);
    return in_tolerances(found, y, dy + f.half * (std::fabs(y) + dy) + f.smallest, f.most);
  }
  if (row_scale_ == 0) {
    // Where a mean rounded, what is left of the row is rounding alone, and any number may stand for it.
    const bool rounded = row_scale_error_ * p_.quantised_most() > 2 * FLT_MIN;
    return found == 0 || (rounded && std::isfinite(found)) ? 0 : INFINITY;
  }
  double q = y / row_scale_;
  if (std::isnan(q))
    return p_.d == Type::i8 ? (found == 0 ? 0 : INFINITY) : (std::isnan(found) ? 0 : INFINITY);
  if (std::isinf(row_scale_)) return found == 0 ? 0 : INFINITY;
  const double dq =
      dy / row_scale_ + std::fabs(q) * row_scale_error_ / row_scale_ + 4 * kRoundoff * std::fabs(q);
  return in_tolerances(found, q, dq + half_step(p_.d, std::fabs(q) + dq), p_.quantised_most());
}

std::string ExpectedRow::text_of_d(int64_t n) const {
  char text[120];
  const double y = y_[size_t(n)];
  if (p_.quantised())
    std::snprintf(text, sizeof text, "%.9g (%.9g by the row's scale %.9g)", y / row_scale_, y, row_scale_);
  else
    std::snprintf(text, sizeof text, "%.9g +- %.3g", y,
                  dy_[size_t(n)] + rows_format(p_.d).half * std::fabs(y) + rows_format(p_.d).smallest);
  return text;
}

} // namespace deepgen
