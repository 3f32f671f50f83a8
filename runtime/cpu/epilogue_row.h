// The steps of an epilogue over a piece of a row, behind a BLAS: for loops that compilers vectorise. The
// runtime and the measurement run the same ones.
#pragma once

#include "runtime/cpu/activation.h"

#include "deepgen/epilogue_steps.h"

#include <cstdint>

namespace deepgen {

/// Numbered as the table has them.
enum class RowStep : uint8_t {
#define DEEPGEN_STEP(name, ...) name,
  DEEPGEN_EPILOGUE_STEPS(DEEPGEN_STEP)
#undef DEEPGEN_STEP
};

/// One step over n values in a row; `y` is its operand: an array for columns and matrices, else one value.
template <typename T>
[[gnu::always_inline]] inline void apply_row(RowStep step, T* __restrict row, int64_t n,
                                             const T* __restrict y, T low, T high) {
  const auto map = [&](auto function) {
    for (int64_t j = 0; j < n; ++j) row[j] = function(row[j], j);
  };
  switch (step) {
  case RowStep::bias:
  case RowStep::residual:
    return map([&](T x, int64_t j) { return x + y[j]; });
  case RowStep::multiply:
  case RowStep::scale_col:
    return map([&](T x, int64_t j) { return x * y[j]; });
  case RowStep::bias_row:
    return map([value = *y](T x, int64_t) { return x + value; });
  case RowStep::scale_a:
  case RowStep::scale_b:
  case RowStep::scale_d:
  case RowStep::scale_row:
    return map([value = *y](T x, int64_t) { return x * value; });
  case RowStep::relu:
    return map([](T x, int64_t) { return x < 0 ? T(0) : x; }); // NaN stays NaN
  case RowStep::prelu:
    return map([&](T x, int64_t j) { return x > 0 ? x : x * y[j]; });
  case RowStep::clamp:
    return map([=](T x, int64_t) { return x < low ? low : x > high ? high : x; });
  case RowStep::gelu:
    return map([](T x, int64_t) { return activation::gelu(x); });
  case RowStep::gelu_tanh:
    return map([](T x, int64_t) { return activation::gelu_tanh(x); });
  case RowStep::silu:
    return map([](T x, int64_t) { return activation::silu(x); });
  case RowStep::sigmoid:
    return map([](T x, int64_t) { return x == x ? activation::sigmoid(x) : x; });
  }
}

} // namespace deepgen
