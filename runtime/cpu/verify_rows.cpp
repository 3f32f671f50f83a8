#include "runtime/cpu/verify.h"
#include "runtime/cpu/verify_values.h"

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr int64_t most_elements = int64_t(1) << 24; ///< of D that are checked, but at least one row
constexpr double epsilon = 1e-5, roundoff = 0x1p-24;

enum Kind { softmax, log_softmax, layer_norm, rms_norm, kind_count };
constexpr const char* kind_names[kind_count] = {"softmax", "log_softmax", "layer_norm", "rms_norm"};

/// kind_count: the key names none.
int kind_of(const char* problem) {
  const char* kind = std::strstr(problem, " kind=");
  int i = 0;
  for (; kind && i < kind_count; ++i) {
    const size_t length = std::strlen(kind_names[i]);
    if (std::strncmp(kind + 6, kind_names[i], length) == 0 && kind[6 + length] == ' ') break;
  }
  return kind ? i : int(kind_count);
}

/// Memory of an operand: inputs are multiples of 1/64 in [-2, 2), outputs bytes of 0xff.
struct RowsBuffer {
  void* data = nullptr;
  const deepgen_operand* operand = nullptr;
  int64_t ld = 0;
  ~RowsBuffer() { std::free(data); }

  /// True for a function that has no such operand.
  bool make(const deepgen_function& f, uint8_t slot, bool padded) {
    operand = find_operand(f, slot);
    if (!operand) return true;
    ld = operand->columns + (padded && operand->flags & DEEPGEN_OPERAND_MATRIX ? 3 : 0);
    int64_t count = 0, bytes = 0;
    if (__builtin_mul_overflow(operand->rows, ld, &count) ||
        __builtin_mul_overflow(count, int64_t(size_of(operand->type)), &bytes))
      return false;
    data = std::malloc(size_t(bytes));
    if (!data) return false;
    std::memset(data, 0xff, size_t(bytes));
    uint64_t seed = slot;
    for (int64_t i = 0; !(operand->flags & DEEPGEN_OPERAND_OUT) && i < count; ++i)
      encode(data, operand->type, i, float(int64_t(next_random(seed)) >> 56) / 64);
    return true;
  }
  double at(int64_t row, int64_t column) const { return decode(data, operand->type, row * ld + column); }
  /// Of a vector, or what stands for one that is not there.
  double at(int64_t column, double otherwise) const { return operand ? at(0, column) : otherwise; }
  bool is_untouched_behind(int64_t row) const {
    const auto* bytes = static_cast<const unsigned char*>(data) + row * ld * int64_t(size_of(operand->type));
    for (int64_t i = operand->columns * size_of(operand->type); i < ld * int64_t(size_of(operand->type)); ++i)
      if (bytes[i] != 0xff) return false;
    return true;
  }
};

/// Half the distance between neighbours of an output's type about x.
double half_step(uint8_t type, double x) {
  if (type == DEEPGEN_I8) return 0.5;
  if (type == DEEPGEN_E4M3) return std::ldexp(0.5, (x >= 0x1p-6 ? std::ilogb(x) : -6) - 3);
  const double relative = type == DEEPGEN_F16 ? 0x1p-11 : type == DEEPGEN_BF16 ? 0x1p-8 : roundoff;
  return relative * x + (type == DEEPGEN_F16 ? 0x1p-25 : FLT_MIN);
}

class RowsCheck {
public:
  RowsCheck(const deepgen_function& f, int kind, bool padded) : f_(f), kind_(kind), padded_(padded) {}

  bool make() {
    for (auto [buffer, slot] :
         {Pair{&x_, DEEPGEN_ARG_X}, Pair{&residual_, DEEPGEN_ARG_RESIDUAL}, Pair{&scale_, DEEPGEN_ARG_SCALE},
          Pair{&bias_, DEEPGEN_ARG_BIAS}, Pair{&d_, DEEPGEN_ARG_D}, Pair{&sum_, DEEPGEN_ARG_RESIDUAL_OUT},
          Pair{&row_scales_, DEEPGEN_ARG_ROW_SCALES}})
      if (!buffer->make(f_, uint8_t(slot), padded_)) return false;
    return x_.operand && d_.operand;
  }

  deepgen_status call() {
    deepgen_rows_args args;
    args.x = x_.data, args.residual = residual_.data, args.scale = scale_.data, args.bias = bias_.data;
    args.d = d_.data, args.residual_out = sum_.data, args.row_scales = row_scales_.data;
    args.ldx = x_.ld, args.ld_residual = residual_.ld, args.ldd = d_.ld, args.ld_residual_out = sum_.ld;
    args.epsilon = epsilon;
    return deepgen_run_rows(&f_, &args);
  }

  bool rows_are_right(Finding& finding) {
    const int64_t m = d_.operand->rows, n = d_.operand->columns;
    const int64_t step = m > most_elements / n ? m / (most_elements / n + 1) + 1 : 1;
    for (int64_t i = 0; i < m; i += step, finding.checked += n) {
      statistics(i, n);
      if (!row_is_right(i, n, finding)) return false;
    }
    return true;
  }

private:
  struct Pair {
    RowsBuffer* buffer;
    deepgen_arg slot;
  };

  double z(int64_t i, int64_t j) const { return x_.at(i, j) + (residual_.operand ? residual_.at(i, j) : 0); }

  /// What all elements of a row share.
  void statistics(int64_t i, int64_t n) {
    most_ = -HUGE_VAL, mean_ = sum_of_exp_ = square_ = magnitude_ = 0;
    for (int64_t j = 0; j < n; ++j) most_ = std::fmax(most_, z(i, j)), mean_ += z(i, j) / double(n);
    if (kind_ != layer_norm) mean_ = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double t = z(i, j);
      magnitude_ = std::fmax(magnitude_, std::fabs(t));
      sum_of_exp_ += std::exp(t - most_), square_ += (t - mean_) * (t - mean_) / double(n);
    }
    error_ = (24 + 2 * std::sqrt(double(n))) * roundoff; // of a sum, and of what follows it
    row_scale_ = 1;
    if (!row_scales_.operand) return;
    double most = 0;
    for (int64_t j = 0; j < n; ++j) most = std::fmax(most, std::fabs(value(i, j).x));
    row_scale_ = most / (d_.operand->type == DEEPGEN_I8 ? 127 : 448);
  }

  struct Value {
    double x, tolerance;
  };
  /// D ahead of its rounding. The operands are as small as make() has them, so that first order bounds do.
  Value value(int64_t i, int64_t j) const {
    const double t = z(i, j), factor = 1 / std::sqrt(square_ + epsilon);
    double x = (t - mean_) * factor, tolerance = error_ * factor * magnitude_;
    if (kind_ == softmax)
      x = std::exp(t - most_) / sum_of_exp_, tolerance = error_ * x;
    else if (kind_ == log_softmax)
      x = t - most_ - std::log(sum_of_exp_), tolerance = error_ * (1 + std::fabs(x));
    const double scale = scale_.at(j, 1.0), bias = bias_.at(j, 0.0);
    return {x * scale + bias,
            tolerance * std::fabs(scale) + error_ * (std::fabs(x * scale) + std::fabs(bias))};
  }

  bool row_is_right(int64_t i, int64_t n, Finding& finding) const {
    const auto wrong = [&](const char* what, int64_t j, double found, double wanted) {
      std::snprintf(finding.text, sizeof finding.text, "%s[%lld, %lld] is %.9g, expected %.9g", what,
                    (long long)i, (long long)j, found, wanted);
      return false;
    };
    if (row_scales_.operand) {
      const double found = row_scales_.at(0, i);
      if (!(std::fabs(found - row_scale_) <= 8 * error_ * row_scale_ + FLT_MIN))
        return wrong("row_scales", 0, found, row_scale_);
    }
    for (int64_t j = 0; j < n; ++j) {
      const Value v = value(i, j);
      const double wanted = row_scale_ == 0 ? 0 : v.x / row_scale_, found = d_.at(i, j);
      const double tolerance =
          row_scale_ == 0 ? 0 : v.tolerance / row_scale_ + 8 * error_ * std::fabs(wanted);
      if (!(std::fabs(found - wanted) <=
            tolerance + half_step(d_.operand->type, std::fabs(wanted) + tolerance)))
        return wrong("D", j, found, wanted);
      if (sum_.operand && !(std::fabs(sum_.at(i, j) - z(i, j)) <= half_step(sum_.operand->type, 4)))
        return wrong("the residual output", j, sum_.at(i, j), z(i, j));
    }
    for (const RowsBuffer* out : {&d_, &sum_})
      if (out->operand && !out->is_untouched_behind(i)) {
        std::snprintf(finding.text, sizeof finding.text, "writes beyond row %lld", (long long)i);
        return false;
      }
    return true;
  }

  const deepgen_function& f_;
  const int kind_;
  const bool padded_;
  RowsBuffer x_, residual_, scale_, bias_, d_, sum_, row_scales_;
  double most_ = 0, mean_ = 0, sum_of_exp_ = 0, square_ = 0, magnitude_ = 0, error_ = 0, row_scale_ = 1;
};

} // namespace

void verify_rows(const deepgen_function& f, bool padded, const int64_t*, Finding& finding) {
  const int kind = kind_of(f.problem);
  finding.status = DEEPGEN_ERROR_ARGUMENT, finding.checked = 0;
  if (kind == kind_count) return;
  RowsCheck check(f, kind, padded);
  finding.status = DEEPGEN_ERROR_WORKSPACE;
  if (!check.make()) return;
  if ((finding.status = check.call())) return;
  if (!check.rows_are_right(finding)) finding.status = DEEPGEN_ERROR_WRONG_RESULT;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
