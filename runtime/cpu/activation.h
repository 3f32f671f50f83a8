// Activations for loops that compilers vectorise: no call, no branch. What a careful user writes behind a
// BLAS. The measurement and benchmarks/cpu include it, too.
#pragma once

#include "deepgen/erfc_table.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace deepgen::activation {

#define DEEPGEN_INLINE [[gnu::always_inline]] inline

template <typename T>
constexpr bool is_single = std::is_same_v<T, float>;

/// Not a loop: one within another is not vectorised.
template <std::size_t i = 0, typename T, std::size_t count>
DEEPGEN_INLINE T polynomial(T t, const T (&ascending)[count]) {
  if constexpr (i + 1 == count)
    return ascending[i];
  else
    return polynomial<i + 1>(t, ascending) * t + ascending[i];
}

/// 2^n exp(r) after Cody and Waite, as templates/ir/epilogue.cpp emits it; 0 where it would be subnormal. To
/// 4 u.
template <typename T>
DEEPGEN_INLINE T exp(T x) {
  using Bits = std::conditional_t<is_single<T>, int32_t, int64_t>;
  constexpr T lowest = is_single<T> ? T(-87.33) : T(-708.39), highest = is_single<T> ? T(88) : T(709);
  constexpr T magic = is_single<T> ? T(12582912) : T(6755399441055744);
  constexpr T high = is_single<T> ? T(0.693145751953125) : T(6.93147180369123816490e-01);
  constexpr T low = is_single<T> ? T(1.428606765330187e-06) : T(1.90821492927058770002e-10);
  constexpr T taylor[] = {1, 1, T(1. / 2), T(1. / 6), T(1. / 24), T(1. / 120), T(1. / 720), T(1. / 5040)};
  constexpr T more[] = {1,
                        1,
                        T(1. / 2),
                        T(1. / 6),
                        T(1. / 24),
                        T(1. / 120),
                        T(1. / 720),
                        T(1. / 5040),
                        T(1. / 40320),
                        T(1. / 362880),
                        T(1. / 3628800),
                        T(1. / 39916800),
                        T(1. / 479001600),
                        T(1. / 6227020800)};
  T bounded = x < lowest ? lowest : x;
  bounded = bounded > highest ? highest : bounded;
  const T shifted = bounded * T(1.44269504088896340736) + magic, n = shifted - magic;
  const T r = (bounded - n * high) - n * low;
  T p;
  if constexpr (is_single<T>)
    p = polynomial(r, taylor);
  else
    p = polynomial(r, more);
  Bits exponent, bits;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  std::memcpy(&bits, &p, sizeof bits);
  bits = Bits(std::make_unsigned_t<Bits>(bits) +
              (std::make_unsigned_t<Bits>(exponent) << (is_single<T> ? 23 : 52)));
  std::memcpy(&p, &bits, sizeof p);
  return x < lowest ? T(0) : p;
}

/// erfc(|z|). f32: Abramowitz and Stegun, 7.1.26, to 1.5e-7, which oneDNN's gelu takes as well. f64: the
/// polynomial of kernels, to 1e-15 of itself.
template <typename T>
DEEPGEN_INLINE T erfc_of_magnitude(T magnitude) {
  if constexpr (is_single<T>) {
    constexpr T a[] = {0, 0.254829592f, -0.284496736f, 1.421413741f, -1.453152027f, 1.061405429f};
    return polynomial(1 / (1 + 0.3275911f * magnitude), a) * exp(-magnitude * magnitude);
  } else {
    constexpr T a[] = {DEEPGEN_ERFC_F64}, c = DEEPGEN_ERFC_F64_CENTRE;
    const T z = magnitude > 1000 ? T(1000) : magnitude;
    return polynomial((z - c) / (z + c), a) * exp(-z * z);
  }
}

/// factor / (1 + exp(-x)), of which no part overflows.
template <typename T>
DEEPGEN_INLINE T logistic(T x, T factor) {
  const T decay = exp(x < 0 ? x : -x);
  return (x < 0 ? factor * decay : factor) / (1 + decay);
}

template <typename T>
DEEPGEN_INLINE T gelu(T x) {
  const T z = x * T(0.70710678118654752440), tail = erfc_of_magnitude(z < 0 ? -z : z);
  return T(0.5) * x * (z > 0 ? 2 - tail : tail);
}
template <typename T>
DEEPGEN_INLINE T gelu_tanh(T x) {
  constexpr T twice_root = T(1.59576912160573071176); // 2 sqrt(2 / pi)
  return logistic(x * (twice_root + twice_root * T(0.044715) * x * x), x);
}
template <typename T>
DEEPGEN_INLINE T silu(T x) {
  return logistic(x, x);
}
template <typename T>
DEEPGEN_INLINE T sigmoid(T x) {
  return logistic(x, T(1));
}

#undef DEEPGEN_INLINE

} // namespace deepgen::activation
