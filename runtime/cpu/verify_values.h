// Elements of any type, for the checks of a library's functions. Internal.
#pragma once

#include "runtime/core/arguments.h"

#include <cmath>
#include <cstring>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// The number that these bits are.
inline double decode(const void* data, uint8_t type, int64_t i) {
  const auto* bytes = static_cast<const unsigned char*>(data) + i * int64_t(size_of(type));
  if (type == DEEPGEN_I8) return double(int8_t(bytes[0]));
  if (type == DEEPGEN_U8) return double(bytes[0]);
  if (type == DEEPGEN_F64 || type == DEEPGEN_I32) {
    double x;
    int32_t whole;
    if (type == DEEPGEN_F64)
      std::memcpy(&x, bytes, 8);
    else
      std::memcpy(&whole, bytes, 4), x = whole;
    return x;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, bytes, size_of(type));
  if (type == DEEPGEN_BF16) bits <<= 16;
  if (type == DEEPGEN_BF16 || type == DEEPGEN_F32) {
    float x;
    std::memcpy(&x, &bits, 4);
    return double(x);
  }
  const int mantissa_bits = type == DEEPGEN_F16 ? 10 : 3, exponent_bits = type == DEEPGEN_F16 ? 5 : 4;
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  const int exponent = int(bits >> mantissa_bits) & top, mantissa = int(bits) & ((1 << mantissa_bits) - 1);
  const double sign = bits >> (mantissa_bits + exponent_bits) ? -1 : 1;
  if (type == DEEPGEN_F16 ? exponent == top : exponent == top && mantissa == 7)
    return mantissa ? double(NAN) : sign * HUGE_VAL;
  const int whole = exponent ? mantissa + (1 << mantissa_bits) : mantissa;
  return sign * std::ldexp(whole, (exponent ? exponent : 1) - bias - mantissa_bits);
}

/// Writes a value that f32, f16 or bf16 has exactly, and no subnormal; or an integer.
inline void encode(void* data, uint8_t type, int64_t i, float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if (type == DEEPGEN_I8 || type == DEEPGEN_U8 || type == DEEPGEN_I32) bits = uint32_t(int32_t(x));
  if (type == DEEPGEN_BF16) bits >>= 16;
  if (type == DEEPGEN_F16 && x != 0) // exponents by the difference of biases, ten bits of 23
    bits = (bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff);
  std::memcpy(static_cast<char*>(data) + i * int64_t(size_of(type)), &bits, size_of(type));
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
