#include "measure/values/stored_values.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace deepgen {
namespace {

template <typename T>
T get(const void* data, int64_t index) {
  T x;
  std::memcpy(&x, static_cast<const char*>(data) + index * int64_t(sizeof x), sizeof x);
  return x;
}
template <typename T>
void put(T x, void* data, int64_t index) {
  std::memcpy(static_cast<char*>(data) + index * int64_t(sizeof x), &x, sizeof x);
}

float from_bits(uint32_t bits) { return get<float>(&bits, 0); }
uint32_t bits_of(float x) { return get<uint32_t>(&x, 0); }

/// Sign, exponent and fraction; `special`: the greatest exponent is of infinity and NaN.
double decoded_small(uint32_t bits, int exponent_bits, int fraction_bits, bool special) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const int exponent = int(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1 : 1;
  if (special && exponent == (1 << exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1u << fraction_bits), exponent - bias - fraction_bits);
}

uint16_t f16_of(float x) {
  const uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00); // 65520 and more
  if (magnitude < 0x38800000)                                  // steps of 2^-24, as those of sums with 1/2
    return uint16_t(sign | (bits_of(from_bits(magnitude) + 0.5f) - 0x3f000000));
  return uint16_t(sign | (((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13) - (112u << 10)));
}

uint16_t bf16_of(float x) {
  const uint32_t bits = bits_of(x);
  if (x != x) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace

double decoded(Type type, const void* data, int64_t index) {
  switch (type) {
  case Type::f64:
    return get<double>(data, index);
  case Type::f16:
    return decoded_small(get<uint16_t>(data, index), 5, 10, true);
  case Type::bf16:
    return from_bits(uint32_t(get<uint16_t>(data, index)) << 16);
  case Type::e4m3: {
    const auto bits = get<uint8_t>(data, index);
    return (bits & 0x7f) == 0x7f ? std::numeric_limits<double>::quiet_NaN()
                                 : decoded_small(bits, 4, 3, false);
  }
  case Type::i8:
    return get<int8_t>(data, index);
  case Type::u8:
    return get<uint8_t>(data, index);
  case Type::i32:
    return get<int32_t>(data, index);
  default:
    return get<float>(data, index);
  }
}

void encode(Type type, double value, void* data, int64_t index) {
  switch (type) {
  case Type::f64:
    return put(value, data, index);
  case Type::f16:
    return put(f16_of(float(value)), data, index);
  case Type::bf16:
    return put(bf16_of(float(value)), data, index);
  case Type::i8:
    return put(int8_t(value), data, index);
  case Type::u8:
    return put(uint8_t(value), data, index);
  case Type::i32:
    return put(int32_t(value), data, index);
  default:
    return put(float(value), data, index);
  }
}

} // namespace deepgen
