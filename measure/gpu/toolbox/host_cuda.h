// What cuda_kernels.cu uses of CUDA, on the host: a kernel is a loop over its grid, and each thread of the
// host runs one block of it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

using std::isinf, std::isnan;

#define __device__
#define __global__ __attribute__((visibility("hidden")))

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};
inline thread_local Index3 blockIdx, threadIdx, blockDim{1, 1, 1}, gridDim{1, 1, 1};

/// A float of so many bits without a type of its own. `largest`: bits of its largest finite value.
struct SmallFloat {
  int exponent_bits, fraction_bits;
  unsigned largest;
  bool saturates; ///< else what is larger is infinite

  double value(unsigned bits) const {
    const int sign = int(bits >> (exponent_bits + fraction_bits) & 1);
    const unsigned magnitude = bits & ((1u << (exponent_bits + fraction_bits)) - 1), infinity = largest + 1;
    const unsigned fraction = magnitude & ((1u << fraction_bits) - 1);
    const int exponent = int(magnitude >> fraction_bits), bias = (1 << (exponent_bits - 1)) - 1;
    double x = 0;
    if (magnitude > largest)
      x = magnitude == infinity && !(infinity & ((1u << fraction_bits) - 1)) ? INFINITY : NAN;
    else if (exponent == 0)
      x = std::ldexp(fraction, 1 - bias - fraction_bits);
    else
      x = std::ldexp(fraction + (1u << fraction_bits), exponent - bias - fraction_bits);
    return sign ? -x : x;
  }

  /// Rounded to nearest, ties to even.
  unsigned bits(double x) const {
    const unsigned sign = std::signbit(x) ? 1u << (exponent_bits + fraction_bits) : 0,
                   all = (1u << (exponent_bits + fraction_bits)) - 1;
    if (std::isnan(x)) return sign | all;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = 0;
    std::frexp(x, &exponent);
    exponent = x == 0 || exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    // In units of the last place; one that is carried moves the exponent up by itself.
    const double units =
        std::isinf(x) ? INFINITY : std::nearbyint(std::ldexp(std::fabs(x), fraction_bits - exponent));
    const double magnitude = units + std::ldexp(double(exponent + bias - 1), fraction_bits);
    return sign | (magnitude <= double(largest) ? unsigned(magnitude) : saturates ? largest : largest + 1);
  }
};
inline constexpr SmallFloat kHalf{5, 10, 0x7bff, false}, kBfloat{8, 7, 0x7f7f, false},
    kE4m3{4, 3, 0x7e, true}, kE5m2{5, 2, 0x7b, true};

struct __half {
  uint16_t bits;
};
struct __nv_bfloat16 {
  uint16_t bits;
};
struct __nv_fp8_e4m3 {
  uint8_t bits;
  explicit operator float() const { return float(kE4m3.value(bits)); }
};
struct __nv_fp8_e5m2 {
  uint8_t bits;
  explicit operator float() const { return float(kE5m2.value(bits)); }
};
enum { __NV_SATFINITE, __NV_E4M3, __NV_E5M2 };

inline float __half2float(__half x) { return float(kHalf.value(x.bits)); }
inline float __bfloat162float(__nv_bfloat16 x) { return std::bit_cast<float>(uint32_t(x.bits) << 16); }
inline __half __double2half(double x) { return {uint16_t(kHalf.bits(x))}; }
inline __nv_bfloat16 __double2bfloat16(double x) { return {uint16_t(kBfloat.bits(x))}; }
inline uint16_t __half_as_ushort(__half x) { return x.bits; }
inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline uint8_t __nv_cvt_double_to_fp8(double x, int, int kind) {
  return uint8_t((kind == __NV_E4M3 ? kE4m3 : kE5m2).bits(x));
}
inline uint32_t __float_as_uint(float x) { return std::bit_cast<uint32_t>(x); }
inline uint64_t __double_as_longlong(double x) { return std::bit_cast<uint64_t>(x); }
inline float __expf(float x) { return std::exp(x); }

template <typename T>
void atomicAdd(T* at, T x) {
  __atomic_fetch_add(at, x, __ATOMIC_RELAXED);
}
template <typename T>
void replace_while(T* at, T x, bool (*better)(T, T)) {
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (better(x, old) &&
         !__atomic_compare_exchange_n(at, &old, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
template <typename T>
void atomicMin(T* at, T x) {
  replace_while<T>(at, x, [](T a, T b) { return a < b; });
}
template <typename T>
void atomicMax(T* at, T x) {
  replace_while<T>(at, x, [](T a, T b) { return a > b; });
}
