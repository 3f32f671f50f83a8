// Elements of operands in the fake device's memory, which is the host's.
#pragma once

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

} // namespace fake_hip
