// Numbers in the formats of the tensor cores, as bits. f64 holds every value of the others exactly.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace deepgen::ptx_sim {

/// What one element of a matrix operand or a conversion is.
enum class Format { f32, f64, f16, bf16, tf32, e4m3, e5m2, s8, u8, s32 };

int bits_of(Format);

inline float to_float(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
inline double to_double(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t to_bits(float x) { return std::bit_cast<uint32_t>(x); }
inline uint64_t to_bits(double x) { return std::bit_cast<uint64_t>(x); }

/// The values of a format of 8 bits by their bits.
const double* values_of_8_bits(Format);

/// The exponent is moved by a multiplication, which is exact and serves subnormal numbers too.
inline double decode_f16(uint64_t bits) {
  const auto sign = uint32_t(bits & 0x8000) << 16, rest = uint32_t(bits & 0x7fff);
  if (rest > 0x7c00) return std::numeric_limits<double>::quiet_NaN();
  const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | (rest == 0x7c00 ? 0x7f800000u : std::bit_cast<uint32_t>(scaled)));
}

// Inline: tensor cores' instructions take most of a simulation, most of that for these.

inline double decode(Format f, uint64_t bits) {
  switch (f) {
  case Format::f64:
    return to_double(bits);
  case Format::f32:
    return to_float(bits);
  case Format::tf32:
    return to_float(bits & 0xffffe000u); // the tensor core ignores the rest
  case Format::bf16:
    return to_float(bits << 16);
  case Format::f16:
    return decode_f16(bits);
  case Format::s8:
    return int8_t(bits);
  case Format::u8:
    return uint8_t(bits);
  case Format::s32:
    return int32_t(bits);
  default:
    return values_of_8_bits(f)[bits & 0xff];
  }
}

uint64_t encode_narrow(Format, double value, bool saturate);
/// To nearest, ties to even; what is too large becomes infinity, or with `saturate` the largest finite value.
/// tf32: ties away from zero, as cvt.rna does. Integers: to nearest, saturated.
inline uint64_t encode(Format f, double x, bool saturate = false) {
  return f == Format::f32 ? to_bits(float(x)) : f == Format::f64 ? to_bits(x) : encode_narrow(f, x, saturate);
}

} // namespace deepgen::ptx_sim
