// deepgen_verify(): a function against a plain loop in f64, in the program and on the machine that it runs
// on. CPU only.
#include "runtime/arguments.h"
#include "runtime/select.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace deepgen::inline DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr const char* step_names[] = {"bias",    "bias_row", "relu",      "gelu",      "gelu_tanh",
                                      "silu",    "sigmoid",  "clamp",     "residual",  "multiply",
                                      "scale_a", "scale_b",  "scale_row", "scale_col", "scale_d"};
constexpr int step_count = sizeof step_names / sizeof *step_names;
static_assert(step_count == DEEPGEN_EPILOGUE_SCALE_D + 1);
constexpr double clamp_low = -0.75, clamp_high = 1.25;
constexpr int64_t most_products = int64_t(1) << 28, fewest_elements = 1024; ///< of what is checked

/// What only the problem's key says.
struct Key {
  bool a_transposed = false, b_transposed = false;
  int gate = -1;
  int steps[step_count], count = 0;
};

/// The step of this name, which ends at a space, a plus or the end; -1: none.
int step_of(const char* name) {
  const size_t length = std::strcspn(name, " +");
  for (int i = 0; i < step_count; ++i)
    if (std::strlen(step_names[i]) == length && std::memcmp(step_names[i], name, length) == 0) return i;
  return -1;
}

bool parse(const char* problem, Key& key) {
  const char* layout = std::strstr(problem, " layout=");
  const char* gate = std::strstr(problem, " gate=");
  const char* epilogue = std::strstr(problem, " epilogue=");
  if (!layout || !epilogue || std::strlen(layout) < 10) return false;
  key.a_transposed = layout[8] == 't', key.b_transposed = layout[9] == 't';
  if (gate && (key.gate = step_of(gate + 6)) < 0) return false;
  for (const char* at = epilogue + 10; *at && *at != ' ' && key.count < step_count; at += *at == '+') {
    const int step = step_of(at);
    if (step >= 0) key.steps[key.count++] = step;
    at += std::strcspn(at, " +");
  }
  return true;
}

double read(const void* data, uint8_t type, int64_t i) {
  return type == DEEPGEN_F64 ? static_cast<const double*>(data)[i]
                             : double(static_cast<const float*>(data)[i]);
}

/// An operand: `entries` matrices of `rows` rows, `ld` elements apart. Filled with values in [-1, 1), or with
/// NaN.
struct Operand {
  void* data = nullptr;
  int64_t rows = 0, ld = 0, entries = 0;
  uint8_t type = DEEPGEN_F32;
  ~Operand() { std::free(data); }

  bool make(uint8_t of, int64_t batch, int64_t row_count, int64_t columns, bool padded, uint64_t seed) {
    type = of, entries = batch, rows = row_count, ld = columns + (padded ? 3 : 0);
    int64_t count = 0, bytes = 0;
    if (__builtin_mul_overflow(rows, ld, &count) || __builtin_mul_overflow(count, entries, &count) ||
        __builtin_mul_overflow(count, int64_t(size_of(type)), &bytes))
      return false;
    std::free(data);
    data = std::malloc(size_t(bytes));
    for (int64_t i = 0; data && i < count; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      set(i, poison ? double(NAN) : double(int64_t(seed) >> 40) / double(1 << 23));
    }
    return data;
  }
  void set(int64_t i, double x) {
    if (type == DEEPGEN_F64)
      static_cast<double*>(data)[i] = x;
    else
      static_cast<float*>(data)[i] = float(x);
  }
  double at(int64_t entry, int64_t row, int64_t column) const {
    return read(data, type, (entry * rows + row) * ld + column);
  }
  bool poison = false;
};

struct Value {
  double x, tolerance;
};

/// The function's operands for one call, and what the call should give.
class Check {
public:
  Check(const deepgen_function& f, const Key& key, bool padded) : f_(f), key_(key), padded_(padded) {}

  bool make() {
    d_.poison = true;
    bool good = a_.make(f_.a_type, f_.batch, f_.a_rows, f_.a_columns, padded_, 1) &&
                b_.make(f_.b_type, f_.batch, f_.b_rows, f_.b_columns, padded_, 2) &&
                d_.make(f_.d_type, f_.batch, f_.m, f_.n, padded_, 4) &&
                (!padded_ || c_.make(f_.d_type, f_.batch, f_.m, f_.n, padded_, 3));
    for (int i = 0; good && i < key_.count; ++i) {
      const int step = key_.steps[i];
      const bool scale = step >= DEEPGEN_EPILOGUE_SCALE_A;
      const bool matrix = step == DEEPGEN_EPILOGUE_RESIDUAL || step == DEEPGEN_EPILOGUE_MULTIPLY;
      const bool per_row = step == DEEPGEN_EPILOGUE_BIAS_ROW || step == DEEPGEN_EPILOGUE_SCALE_ROW;
      good =
          steps_[step].make(scale ? f_.scale_type : f_.epilogue_type, matrix ? f_.batch : 1,
                            matrix ? f_.m : 1, per_row ? f_.m : f_.n, matrix && padded_, 5 + uint64_t(step));
    }
    return good;
  }

  deepgen_status call() {
    deepgen_gemm_args x;
    x.a = a_.data, x.b = b_.data, x.d = d_.data;
    x.lda = a_.ld, x.ldb = b_.ld, x.ldd = d_.ld;
    if (padded_) x.c = c_.data, x.ldc = c_.ld, x.alpha = alpha(), x.beta = beta();
    x.bias = steps_[DEEPGEN_EPILOGUE_BIAS].data, x.bias_row = steps_[DEEPGEN_EPILOGUE_BIAS_ROW].data;
    x.residual = steps_[DEEPGEN_EPILOGUE_RESIDUAL].data, x.ld_residual = steps_[DEEPGEN_EPILOGUE_RESIDUAL].ld;
    x.multiplier = steps_[DEEPGEN_EPILOGUE_MULTIPLY].data,
    x.ld_multiplier = steps_[DEEPGEN_EPILOGUE_MULTIPLY].ld;
    x.scale_a = steps_[DEEPGEN_EPILOGUE_SCALE_A].data, x.scale_b = steps_[DEEPGEN_EPILOGUE_SCALE_B].data;
    x.scale_row = steps_[DEEPGEN_EPILOGUE_SCALE_ROW].data,
    x.scale_col = steps_[DEEPGEN_EPILOGUE_SCALE_COL].data;
    x.scale_d = steps_[DEEPGEN_EPILOGUE_SCALE_D].data;
    x.clamp_low = clamp_low, x.clamp_high = clamp_high;
    return deepgen_run_gemm(&f_, &x);
  }

  /// Every element is written, none beyond a row; values of all, or of the corners and a sample. Into `text`
  /// what is wrong.
  bool results_are_right(char* text, size_t size, int64_t& checked) const {
    for (int64_t e = 0; e < f_.batch; ++e)
      for (int64_t i = 0; i < f_.m; ++i)
        for (int64_t j = 0; j < d_.ld; ++j)
          if (std::isnan(d_.at(e, i, j)) != (j >= f_.n)) {
            std::snprintf(text, size, "%s D[%lld, %lld] of batch entry %lld",
                          j < f_.n ? "does not write, or not finitely," : "writes beyond a row:",
                          (long long)i, (long long)j, (long long)e);
            return false;
          }
    const int64_t all = f_.batch * f_.m * f_.n, most = most_products / f_.k;
    const int64_t count = most < fewest_elements ? fewest_elements : most;
    uint64_t random = 1;
    for (checked = 0; checked < (all < count ? all : count); ++checked) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const int64_t at = all <= count   ? checked
                         : checked == 0 ? 0
                         : checked == 1 ? all - 1
                                        : int64_t((random >> 1) % uint64_t(all));
      if (!is_right(at / f_.n / f_.m, at / f_.n % f_.m, at % f_.n, text, size)) return false;
    }
    return true;
  }

private:
  double alpha() const { return padded_ ? 1.25 : 1; }
  double beta() const { return padded_ ? -0.75 : 0; }
  double roundoff() const { return f_.d_type == DEEPGEN_F64 ? 0x1p-53 : 0x1p-24; }

  bool is_right(int64_t e, int64_t i, int64_t j, char* text, size_t size) const {
    const Value wanted = expected(e, i, j);
    const double found = d_.at(e, i, j);
    if (std::fabs(found - wanted.x) <= wanted.tolerance) return true;
    std::snprintf(text, size, "D[%lld, %lld] of batch entry %lld is %.9g, expected %.9g +- %.2g",
                  (long long)i, (long long)j, (long long)e, found, wanted.x, wanted.tolerance);
    return false;
  }

  /// alpha times the sum of one row and one column, with the bound of docs/numerics.md.
  Value product(int64_t e, int64_t i, int64_t j) const {
    double sum = 0, rows = 0, columns = 0;
    for (int64_t k = 0; k < f_.k; ++k) {
      const double x = key_.a_transposed ? a_.at(e, k, i) : a_.at(e, i, k);
      const double y = key_.b_transposed ? b_.at(e, j, k) : b_.at(e, k, j);
      sum += x * y, rows += x * x, columns += y * y;
    }
    return {alpha() * sum,
            std::fabs(alpha()) * roundoff() * (8 + 4 * std::sqrt(double(f_.k))) * std::sqrt(rows * columns)};
  }

  Value apply(int step, Value v, double y) const {
    constexpr double function_error = 16;
    const double u = roundoff(), x = v.x;
    switch (step) {
    case DEEPGEN_EPILOGUE_BIAS:
    case DEEPGEN_EPILOGUE_BIAS_ROW:
    case DEEPGEN_EPILOGUE_RESIDUAL:
      return {x + y, v.tolerance + 2 * u * (std::fabs(x) + std::fabs(y))};
    case DEEPGEN_EPILOGUE_RELU:
      return {x > 0 ? x : 0, v.tolerance};
    case DEEPGEN_EPILOGUE_CLAMP:
      return {x < clamp_low ? clamp_low : x > clamp_high ? clamp_high : x, v.tolerance};
    case DEEPGEN_EPILOGUE_GELU:
      return {0.5 * x * std::erfc(-x * M_SQRT1_2), 1.13 * v.tolerance + function_error * u * std::fabs(x)};
    case DEEPGEN_EPILOGUE_GELU_TANH:
      return {x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))),
              1.13 * v.tolerance + function_error * u * std::fabs(x)};
    case DEEPGEN_EPILOGUE_SILU:
      return {x / (1 + std::exp(-x)), 1.1 * v.tolerance + function_error * u * std::fabs(x)};
    case DEEPGEN_EPILOGUE_SIGMOID:
      return {1 / (1 + std::exp(-x)), 0.25 * v.tolerance + function_error * u};
    default:
      return {x * y, std::fabs(y) * v.tolerance + 2 * u * std::fabs(x * y)};
    }
  }

  double operand(int step, int64_t e, int64_t i, int64_t j) const {
    const Operand& y = steps_[step];
    switch (step) {
    case DEEPGEN_EPILOGUE_RESIDUAL:
    case DEEPGEN_EPILOGUE_MULTIPLY:
      return y.at(e, i, j);
    case DEEPGEN_EPILOGUE_BIAS_ROW:
    case DEEPGEN_EPILOGUE_SCALE_ROW:
      return y.at(0, 0, i);
    case DEEPGEN_EPILOGUE_BIAS:
    case DEEPGEN_EPILOGUE_SCALE_COL:
      return y.at(0, 0, j);
    default:
      return y.data ? y.at(0, 0, 0) : 0;
    }
  }

  Value expected(int64_t e, int64_t i, int64_t j) const {
    Value v = product(e, i, j);
    if (key_.gate >= 0) {
      const Value gate = apply(key_.gate, v, 0), up = product(e, i, f_.n + j);
      const double x = gate.x * up.x;
      v = {x, std::fabs(up.x) * gate.tolerance + (std::fabs(gate.x) + gate.tolerance) * up.tolerance +
                  2 * roundoff() * std::fabs(x)};
    }
    if (padded_) {
      const double c = beta() * c_.at(e, i, j);
      v = {v.x + c, v.tolerance + 8 * roundoff() * std::fabs(c)};
    }
    for (int s = 0; s < key_.count; ++s) v = apply(key_.steps[s], v, operand(key_.steps[s], e, i, j));
    v.tolerance += f_.d_type == DEEPGEN_F64 ? 0x1p-1022 : 0x1p-126;
    return v;
  }

  const deepgen_function& f_;
  const Key& key_;
  const bool padded_;
  Operand a_, b_, c_, d_, steps_[step_count];
};

} // namespace
} // namespace deepgen::inline DEEPGEN_ABI_NAMESPACE

using namespace deepgen;

deepgen_status deepgen_verify(const deepgen_function* function, char* text, size_t size) {
  char found[256] = "";
  const auto say = [&](deepgen_status status) {
    if (text && size) std::snprintf(text, size, "%s", found);
    return status;
  };
  if (!function) return say(DEEPGEN_ERROR_NULL);
  if (!is_current(*function)) return say(DEEPGEN_ERROR_VERSION);
  const deepgen_kernel* kernel = selected_kernel(*function);
  if (!kernel) return say(DEEPGEN_ERROR_NO_KERNEL);
  Key key;
  if (!parse(function->problem, key) || function->a_type > DEEPGEN_F64) return say(DEEPGEN_ERROR_ARGUMENT);
  int64_t checked = 0;
  for (const bool padded : {false, true}) {
    Check check(*function, key, padded);
    if (!check.make()) {
      std::snprintf(found, sizeof found, "%s: no memory for its operands", function->name);
      return say(DEEPGEN_ERROR_WORKSPACE);
    }
    if (const deepgen_status status = check.call()) return say(status);
    char wrong[160];
    if (!check.results_are_right(wrong, sizeof wrong, checked)) {
      std::snprintf(found, sizeof found, "%.90s: %s", function->name, wrong);
      return say(DEEPGEN_ERROR_WRONG_RESULT);
    }
  }
  std::snprintf(found, sizeof found, "%.90s: %lld of %lld elements checked, all right", function->name,
                (long long)checked, (long long)(function->batch * function->m * function->n));
  return say(DEEPGEN_OK);
}
