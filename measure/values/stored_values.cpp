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

/// Sign, exponent and fraction, of a type without infinity.
double decoded_small(uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const int exponent = int(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1u << fraction_bits), exponent - bias - fraction_bits);
}

/// The exponent's bias is 112 less than that of f32, whose smallest numbers are exact, too.
float f16_number(uint16_t bits) {
  const uint32_t magnitude = uint32_t(bits & 0x7fff) << 13, sign = uint32_t(bits & 0x8000) << 16;
  if (magnitude >= 0x0f800000) return from_bits(sign | 0x70000000 | magnitude); // infinity and NaN
  return from_bits(sign | bits_of(from_bits(magnitude) * 0x1p112f));
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

double e4m3_number(uint8_t bits) {
  return (bits & 0x7f) == 0x7f ? std::numeric_limits<double>::quiet_NaN() : decoded_small(bits, 4, 3);
}

/// Beyond the greatest number it is that one, as GPUs convert.
uint8_t e4m3_of(double x) {
  constexpr double most = 448, least = 0x1p-6; // of normal numbers
  if (x != x) return 0x7f;
  const double magnitude = std::fmin(std::fabs(x), most);
  const int exponent = std::ilogb(std::fmax(magnitude, least));
  // Whole steps, to even; 16 of them carry into the exponent.
  const auto steps = uint32_t(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));
  return uint8_t((std::signbit(x) ? 0x80u : 0u) | (uint32_t(exponent + 6) * 8 + steps));
}

template <typename T, typename Number>
void decode_as(const void* data, int64_t first, int64_t count, double* to, Number number) {
  for (int64_t i = 0; i < count; ++i) to[i] = double(number(get<T>(data, first + i)));
}

/// Magnitudes have the order of their bits; NaN lies beyond infinity.
template <typename T>
int64_t first_bits_beyond(const void* data, int64_t count, T most) {
  constexpr int64_t piece = 256;
  constexpr T sign = T(T(1) << (8 * sizeof(T) - 1));
  for (int64_t at = 0; at < count; at += piece) {
    const int64_t end = at + piece < count ? at + piece : count;
    T any = 0;
    for (int64_t i = at; i < end; ++i) any |= T(T(get<T>(data, i) & T(~sign)) > most);
    for (int64_t i = at; any && i < end; ++i)
      if (T(get<T>(data, i) & T(~sign)) > most) return i;
  }
  return -1;
}

} // namespace

void decode(Type type, const void* data, int64_t first, int64_t count, double* to) {
  switch (type) {
  case Type::f16:
    return decode_as<uint16_t>(data, first, count, to, f16_number);
  case Type::bf16:
    return decode_as<uint16_t>(data, first, count, to,
                               [](uint16_t bits) { return from_bits(uint32_t(bits) << 16); });
  case Type::e4m3:
    return decode_as<uint8_t>(data, first, count, to, e4m3_number);
  default:
    return decode_as<float>(data, first, count, to, [](float x) { return x; });
  }
}

int64_t first_beyond(Type type, const void* data, int64_t count, double most) {
  switch (type) {
  case Type::f16:
    return first_bits_beyond(data, count, f16_of(float(most)));
  case Type::bf16:
    return first_bits_beyond(data, count, bf16_of(float(most)));
  case Type::e4m3:
    return first_bits_beyond(data, count, e4m3_of(most));
  default:
    return first_bits_beyond(data, count, bits_of(float(most)));
  }
}

double decoded(Type type, const void* data, int64_t index) {
  switch (type) {
  case Type::f64:
    return get<double>(data, index);
  case Type::f16:
    return f16_number(get<uint16_t>(data, index));
  case Type::bf16:
    return from_bits(uint32_t(get<uint16_t>(data, index)) << 16);
  case Type::e4m3:
    return e4m3_number(get<uint8_t>(data, index));
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
  case Type::e4m3:
    return put(e4m3_of(value), data, index);
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
