// Elements of operands in the fake device's memory, which is the host's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace fake_hip {

template <typename T>
T at(const void* data, int64_t i) {
  T x;
  std::memcpy(&x, static_cast<const char*>(data) + i * int64_t(sizeof x), sizeof x);
  return x;
}
template <typename T>
void put(void* data, int64_t i, T x) {
  std::memcpy(static_cast<char*>(data) + i * int64_t(sizeof x), &x, sizeof x);
}

/// Rounded to the nearest, ties to even; not for NaN.
inline uint16_t bf16(double x) {
  uint32_t bits;
  const auto single = float(x);
  std::memcpy(&bits, &single, sizeof bits);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// OCP's: of e4m3 the largest code is NaN, of e5m2 the largest exponent is infinity and NaN; tests have
/// neither.
inline double small_float(unsigned bits, int fraction_bits, int bias) {
  const int exponent = int(bits >> fraction_bits & ((1u << (7 - fraction_bits)) - 1));
  const double fraction = double(bits & ((1u << fraction_bits) - 1)) / double(1u << fraction_bits);
  const double x = exponent ? std::ldexp(1 + fraction, exponent - bias) : std::ldexp(fraction, 1 - bias);
  return bits & 0x80 ? -x : x;
}

/// As bf16, and the greatest number of e4m3 beyond that; NaN is OCP's.
inline uint8_t e4m3(double x) {
  if (std::isnan(x)) return 0x7f;
  const double magnitude = std::min(std::fabs(x), 448.0);
  const int exponent = std::max(magnitude > 0 ? std::ilogb(magnitude) : -6, -6);
  const int steps = int(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));
  return uint8_t((x < 0 ? 128 : 0) + (exponent + 6) * 8 + steps);
}

} // namespace fake_hip
