// Numbers in the formats of the tensor cores, as bits. f64 holds every value of the others exactly.
#pragma once

#include <bit>
#include <cstdint>

namespace deepgen::ptx_sim {

/// What one element of a matrix operand or a conversion is.
enum class Format { f32, f64, f16, bf16, tf32, e4m3, e5m2, s8, u8, s32 };

int bits_of(Format);
double decode(Format, uint64_t bits);
/// To nearest, ties to even; what is too large becomes infinity, or with `saturate` the largest finite value.
/// tf32: ties away from zero, as cvt.rna does. Integers: to nearest, saturated.
uint64_t encode(Format, double value, bool saturate = false);

inline float to_float(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
inline double to_double(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t to_bits(float x) { return std::bit_cast<uint32_t>(x); }
inline uint64_t to_bits(double x) { return std::bit_cast<uint64_t>(x); }

} // namespace deepgen::ptx_sim
