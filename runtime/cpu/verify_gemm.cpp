#include "runtime/cpu/verify.h"
#include "runtime/cpu/verify_values.h"

#include "deepgen/epilogue_steps.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

/// A step of an epilogue: its word in the key, the operand that it reads, and where that has the value for an
/// element of D.
enum class Shape : uint8_t { matrix, per_row, per_column, value };
struct StepName {
  const char* name;
  uint8_t slot; ///< DEEPGEN_ARG_COUNT: none
  Shape shape;
};

/// DEEPGEN_ARG_COUNT: none of this name.
constexpr uint8_t slot_of(std::string_view name) {
  constexpr std::string_view names[] = {DEEPGEN_ARG_NAMES};
  uint8_t slot = 0;
  while (slot < DEEPGEN_ARG_COUNT && names[slot] != name) ++slot;
  return slot;
}

struct Step {
  enum {
#define DEEPGEN_STEP(name, ...) name,
    DEEPGEN_EPILOGUE_STEPS(DEEPGEN_STEP)
#undef DEEPGEN_STEP
        step_count
  };
};
constexpr StepName steps[Step::step_count] = {
#define DEEPGEN_STEP(name, operand, shape, ...) {#name, slot_of(operand), Shape::shape},
    DEEPGEN_EPILOGUE_STEPS(DEEPGEN_STEP)
#undef DEEPGEN_STEP
};
constexpr double clamp_low = -0.75, clamp_high = 1.25;
constexpr int64_t most_products = int64_t(1) << 28, fewest_elements = 1024; ///< of what is checked

/// What only the problem's key says.
struct Key {
  bool a_transposed = false, b_transposed = false;
  int gate = -1;
  int steps[Step::step_count], count = 0;
};

/// The step of this name, which ends at a space, a plus or the end; -1: none.
int step_of(const char* name) {
  const size_t length = std::strcspn(name, " +");
  for (int i = 0; i < Step::step_count; ++i)
    if (std::strlen(steps[i].name) == length && std::memcmp(steps[i].name, name, length) == 0) return i;
  return -1;
}

bool parse(const char* problem, Key& key) {
  const char* layout = std::strstr(problem, " layout=");
  const char* gate = std::strstr(problem, " gate=");
  const char* epilogue = std::strstr(problem, " epilogue=");
  if (!layout || !epilogue || std::strlen(layout) < 10) return false;
  key.a_transposed = layout[8] == 't', key.b_transposed = layout[9] == 't';
  if (gate && (key.gate = step_of(gate + 6)) < 0) return false;
  for (const char* at = epilogue + 10; *at && *at != ' ' && key.count < Step::step_count; at += *at == '+') {
    const int step = step_of(at);
    if (step >= 0) key.steps[key.count++] = step;
    at += std::strcspn(at, " +");
  }
  return true;
}

bool is_integer(uint8_t type) { return type == DEEPGEN_I8 || type == DEEPGEN_U8 || type == DEEPGEN_I32; }

/// Memory of an operand: `entries` matrices of `rows` rows, `ld` elements apart. Filled with values in
/// [-1, 1), of integers in [-127, 127], or with bytes of 0xff, which are NaN or -1.
struct GemmBuffer {
  void* data = nullptr;
  int64_t rows = 0, ld = 0, entries = 0;
  uint8_t type = DEEPGEN_F32;
  ~GemmBuffer() { std::free(data); }

  bool make(const deepgen_operand& x, const int64_t* sizes, bool padded, uint64_t seed) {
    const bool matrix = x.flags & DEEPGEN_OPERAND_MATRIX;
    type = x.type, entries = scaled(x.entries, x.entries_by, sizes), rows = scaled(x.rows, x.rows_by, sizes);
    ld = scaled(x.columns, x.columns_by, sizes) + (padded && matrix ? 3 : 0);
    int64_t count = 0, bytes = 0;
    if (__builtin_mul_overflow(rows, ld, &count) || __builtin_mul_overflow(count, entries, &count) ||
        __builtin_mul_overflow(count, int64_t(size_of(type)), &bytes))
      return false;
    std::free(data);
    data = std::malloc(size_t(bytes));
    if (data && x.flags & DEEPGEN_OPERAND_OUT) std::memset(data, 0xff, size_t(bytes));
    for (int64_t i = 0; data && !(x.flags & DEEPGEN_OPERAND_OUT) && i < count; ++i)
      set(i, double(int64_t(next_random(seed)) >> 40) / double(1 << 23));
    return data;
  }
  void set(int64_t i, double x) {
    if (type == DEEPGEN_F64)
      static_cast<double*>(data)[i] = x;
    else if (type == DEEPGEN_F32)
      static_cast<float*>(data)[i] = float(x);
    else if (is_integer(type))
      encode(data, type, i, float(std::trunc(127 * (type == DEEPGEN_U8 ? x + 1 : x))));
    else // of as few bits as bf16 has
      encode(data, type, i, float(std::trunc(128 * x) / 128));
  }
  double at(int64_t entry, int64_t row, int64_t column) const {
    return decode(data, type, (entry * rows + row) * ld + column);
  }
};

/// B as a function with a packed one takes it.
struct PackedBuffer {
  void* data = nullptr;
  ~PackedBuffer() { std::free(data); }

  bool make(const deepgen_function& f, const GemmBuffer& b) {
    const size_t bytes = deepgen_packed_b_size(&f);
    std::free(data);
    data = std::aligned_alloc(64, bytes); // whole lines
    return data && !deepgen_pack_b(&f, b.data, b.ld, 0, data, bytes);
  }
};

struct Value {
  double x, tolerance;
};

/// What kernels for the CPU take as A or make as D.
bool serves(uint8_t type) { return type <= DEEPGEN_BF16 || is_integer(type); }

/// The function's operands for one call, and what the call should give.
class GemmCheck {
public:
  GemmCheck(const deepgen_function& f, const Key& key, bool padded, const int64_t* sizes)
      : f_(f), key_(key), padded_(padded), sizes_(sizes) {
    const deepgen_operand &a = *find_operand(f, DEEPGEN_ARG_A), &d = *find_operand(f, DEEPGEN_ARG_D);
    m_ = scaled(d.rows, d.rows_by, sizes), n_ = scaled(d.columns, d.columns_by, sizes);
    k_ = key.a_transposed ? scaled(a.rows, a.rows_by, sizes) : scaled(a.columns, a.columns_by, sizes);
    batch_ = scaled(d.entries, d.entries_by, sizes);
  }

  bool make() {
    const auto make = [&](GemmBuffer& x, uint8_t slot, uint64_t seed) {
      const deepgen_operand* operand = find_operand(f_, slot);
      return operand && x.make(*operand, sizes_, padded_, seed);
    };
    bool good = make(a_, DEEPGEN_ARG_A, 1) && make(b_, DEEPGEN_ARG_B, 2) && make(d_, DEEPGEN_ARG_D, 4) &&
                (!padded_ || make(c_, DEEPGEN_ARG_C, 3));
    for (int i = 0; good && i < key_.count; ++i)
      if (const uint8_t slot = steps[key_.steps[i]].slot; slot != DEEPGEN_ARG_COUNT)
        good = make(steps_[key_.steps[i]], slot, 5 + uint64_t(key_.steps[i]));
    return good && (!f_.packed_b || packed_.make(f_, b_));
  }

  deepgen_status call() {
    deepgen_gemm_args x;
    int64_t* passed[DEEPGEN_SIZES] = {&x.m, &x.n, &x.k, &x.batch};
    for (int i = 0; i < DEEPGEN_SIZES; ++i)
      if (is_ranged(f_.sizes[i])) *passed[i] = sizes_[i];
    x.a = a_.data, x.b = f_.packed_b ? packed_.data : b_.data, x.d = d_.data;
    x.lda = a_.ld, x.ldb = b_.ld, x.ldd = d_.ld;
    if (padded_) x.c = c_.data, x.ldc = c_.ld, x.alpha = alpha(), x.beta = beta();
    for (int i = 0; i < key_.count; ++i) {
      const deepgen_operand* operand = find_operand(f_, steps[key_.steps[i]].slot);
      if (!operand) continue;
      const GemmBuffer& buffer = steps_[key_.steps[i]];
      set(x, operand->field, buffer.data);
      if (operand->flags & DEEPGEN_OPERAND_MATRIX) set(x, operand->ld_field, buffer.ld);
    }
    x.clamp_low = clamp_low, x.clamp_high = clamp_high;
    return deepgen_run_gemm(&f_, &x);
  }

  /// Every element is written, none beyond a row; values of all, or of the corners and a sample. Into `text`
  /// what is wrong.
  bool results_are_right(char* text, size_t size, int64_t& checked) const {
    for (int64_t e = 0; e < batch_; ++e)
      for (int64_t i = 0; i < m_; ++i)
        for (int64_t j = 0; j < d_.ld; ++j)
          if (is_untouched(e, i, j) != (j >= n_)) {
            std::snprintf(text, size, "%s D[%lld, %lld] of batch entry %lld",
                          j < n_ ? "does not write, or not finitely," : "writes beyond a row:", (long long)i,
                          (long long)j, (long long)e);
            return false;
          }
    const int64_t all = batch_ * m_ * n_, most = most_products / k_;
    const int64_t count = most < fewest_elements ? fewest_elements : most;
    uint64_t random = 1;
    for (checked = 0; checked < (all < count ? all : count); ++checked) {
      next_random(random);
      const int64_t at = all <= count   ? checked
                         : checked == 0 ? 0
                         : checked == 1 ? all - 1
                                        : int64_t((random >> 1) % uint64_t(all));
      if (!is_right(at / n_ / m_, at / n_ % m_, at % n_, text, size)) return false;
    }
    return true;
  }

private:
  /// A field of the arguments, by its offset.
  template <typename T>
  static void set(deepgen_gemm_args& x, uint32_t field, T value) {
    std::memcpy(reinterpret_cast<char*>(&x) + field, &value, sizeof value);
  }
  /// Of integers, the sums are brought to where D's range and the epilogue's functions are.
  double alpha() const {
    if (d_.type == DEEPGEN_I32) return padded_ ? 3 : 1;
    return (padded_ ? 1.25 : 1) * (is_integer(a_.type)   ? 0x1p-10 / std::sqrt(double(k_))
                                   : is_integer(b_.type) ? 0x1p-5 / std::sqrt(double(k_))
                                                         : 1);
  }
  double beta() const { return !padded_ ? 0 : d_.type == DEEPGEN_I32 ? -2 : -0.75; }
  /// Integers have no value that is never a result: whether one is written shows where it is compared.
  bool is_untouched(int64_t e, int64_t i, int64_t j) const {
    return is_integer(d_.type) ? j >= n_ && d_.at(e, i, j) == -1 : std::isnan(d_.at(e, i, j));
  }
  double roundoff() const { return d_.type == DEEPGEN_F64 ? 0x1p-53 : 0x1p-24; }

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
    for (int64_t k = 0; k < k_; ++k) {
      const double x = key_.a_transposed ? a_.at(e, k, i) : a_.at(e, i, k);
      const double y = key_.b_transposed ? b_.at(e, j, k) : b_.at(e, k, j);
      sum += x * y, rows += x * x, columns += y * y;
    }
    return {alpha() * sum,
            std::fabs(alpha()) * roundoff() * (8 + 4 * std::sqrt(double(k_))) * std::sqrt(rows * columns)};
  }

  Value apply(int step, Value v, double y) const {
    constexpr double function_error = 16;
    const double u = roundoff(), x = v.x;
    switch (step) {
    case Step::bias:
    case Step::bias_row:
    case Step::residual:
      return {x + y, v.tolerance + 2 * u * (std::fabs(x) + std::fabs(y))};
    case Step::relu:
      return {x > 0 ? x : 0, v.tolerance};
    case Step::clamp:
      return {x < clamp_low ? clamp_low : x > clamp_high ? clamp_high : x, v.tolerance};
    case Step::prelu:
      return {x > 0 ? x : x * y, std::fmax(1, std::fabs(y)) * v.tolerance + 2 * u * std::fabs(x * y)};
    case Step::gelu:
      return {0.5 * x * std::erfc(-x * M_SQRT1_2), 1.13 * v.tolerance + function_error * u * std::fabs(x)};
    case Step::gelu_tanh:
      return {x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))),
              1.13 * v.tolerance + function_error * u * std::fabs(x)};
    case Step::silu:
      return {x / (1 + std::exp(-x)), 1.1 * v.tolerance + function_error * u * std::fabs(x)};
    case Step::sigmoid:
      return {1 / (1 + std::exp(-x)), 0.25 * v.tolerance + function_error * u};
    default:
      return {x * y, std::fabs(y) * v.tolerance + 2 * u * std::fabs(x * y)};
    }
  }

  /// Of a step that has none: 0.
  double operand(int step, int64_t e, int64_t i, int64_t j) const {
    if (steps[step].slot == DEEPGEN_ARG_COUNT) return 0;
    const GemmBuffer& y = steps_[step];
    switch (steps[step].shape) {
    case Shape::matrix:
      return y.at(e, i, j);
    case Shape::per_row:
      return y.at(0, 0, i);
    case Shape::per_column:
      return y.at(0, 0, j);
    case Shape::value:
      break;
    }
    return y.at(0, 0, 0);
  }

  Value expected(int64_t e, int64_t i, int64_t j) const {
    Value v = product(e, i, j);
    if (key_.gate >= 0) {
      const Value gate = apply(key_.gate, v, 0), up = product(e, i, n_ + j);
      const double x = gate.x * up.x;
      v = {x, std::fabs(up.x) * gate.tolerance + (std::fabs(gate.x) + gate.tolerance) * up.tolerance +
                  2 * roundoff() * std::fabs(x)};
    }
    if (padded_) {
      const double c = beta() * c_.at(e, i, j);
      v = {v.x + c, v.tolerance + 8 * roundoff() * std::fabs(c)};
    }
    for (int s = 0; s < key_.count; ++s) v = apply(key_.steps[s], v, operand(key_.steps[s], e, i, j));
    v.tolerance += d_.type == DEEPGEN_F64 ? 0x1p-1022 : 0x1p-126;
    if (d_.type == DEEPGEN_I32) v = {double(int32_t(uint32_t(int64_t(v.x)))), 0.25}; // modulo 2^32
    if (d_.type == DEEPGEN_I8) v = {std::fmin(std::fmax(v.x, -128), 127), v.tolerance + 0.5};
    if (d_.type == DEEPGEN_BF16) v.tolerance += 0x1p-8 * (std::fabs(v.x) + v.tolerance);
    if (d_.type == DEEPGEN_F16) v.tolerance += 0x1p-11 * (std::fabs(v.x) + v.tolerance) + 0x1p-24;
    return v;
  }

  const deepgen_function& f_;
  const Key& key_;
  const bool padded_;
  const int64_t* sizes_;
  GemmBuffer a_, b_, c_, d_, steps_[Step::step_count];
  PackedBuffer packed_;
  int64_t m_, n_, k_, batch_;
};

} // namespace

void verify_gemm(const deepgen_function& f, bool padded, const int64_t* sizes, Finding& finding) {
  Key key;
  finding.status = DEEPGEN_ERROR_ARGUMENT;
  for (deepgen_arg slot : {DEEPGEN_ARG_A, DEEPGEN_ARG_D})
    if (const deepgen_operand* x = find_operand(f, slot); !x || !serves(x->type)) return;
  if (!parse(f.problem, key)) return;
  GemmCheck check(f, key, padded, sizes);
  finding.status = DEEPGEN_ERROR_WORKSPACE;
  if (!check.make()) return;
  if ((finding.status = check.call())) return;
  if (!check.results_are_right(finding.text, sizeof finding.text, finding.checked))
    finding.status = DEEPGEN_ERROR_WRONG_RESULT;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
