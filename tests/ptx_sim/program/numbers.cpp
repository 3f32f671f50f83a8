#include "tests/ptx_sim/program/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace deepgen::ptx_sim {
namespace {

/// A binary format narrower than f32. `largest` is its largest finite value; e4m3 has no infinity.
struct Small {
  int exponent_bits, fraction_bits, bias;
  double largest;
  bool infinity;
};

const Small& small(Format f) {
  static constexpr Small f16{5, 10, 15, 65504, true}, bf16{8, 7, 127, 0x1.fep127, true},
      e4m3{4, 3, 7, 448, false}, e5m2{5, 2, 15, 57344, true};
  switch (f) {
  case Format::f16:
    return f16;
  case Format::bf16:
    return bf16;
  case Format::e4m3:
    return e4m3;
  default:
    return e5m2;
  }
}

double decode_small(const Small& s, uint64_t bits) {
  const int fraction = int(bits & ((1u << s.fraction_bits) - 1));
  const int top = (1 << s.exponent_bits) - 1, exponent = int(bits >> s.fraction_bits) & top;
  const double sign = bits >> (s.exponent_bits + s.fraction_bits) & 1 ? -1 : 1;
  if (s.infinity && exponent == top)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (!s.infinity && exponent == top && fraction == (1 << s.fraction_bits) - 1)
    return std::numeric_limits<double>::quiet_NaN();
  const int whole = exponent ? fraction + (1 << s.fraction_bits) : fraction;
  return sign * std::ldexp(whole, std::max(exponent, 1) - s.bias - s.fraction_bits);
}

uint64_t encode_small(const Small& s, double x, bool saturate) {
  const uint64_t sign = uint64_t(std::signbit(x)) << (s.exponent_bits + s.fraction_bits);
  const uint64_t top = ((uint64_t(1) << s.exponent_bits) - 1) << s.fraction_bits;
  const uint64_t all = top | ((uint64_t(1) << s.fraction_bits) - 1);
  if (std::isnan(x)) return all;
  x = std::fabs(x);
  int exponent = 1 - s.bias;
  if (x > 0 && std::isfinite(x)) exponent = std::max(exponent, std::ilogb(x));
  const double unit = std::ldexp(1, exponent - s.fraction_bits);
  if (std::isfinite(x)) x = std::nearbyint(x / unit) * unit; // the default mode: ties to even
  const uint64_t most = s.infinity ? top - 1 : all - 1;
  if (x > s.largest) return sign | (saturate ? most : s.infinity ? top : all);
  const auto whole = uint64_t(std::llround(x / unit)); // up to 2^(fraction_bits + 1), which carries
  return sign | ((uint64_t(exponent - 1 + s.bias) << s.fraction_bits) + whole);
}

} // namespace

int bits_of(Format f) {
  switch (f) {
  case Format::f64:
    return 64;
  case Format::f32:
  case Format::tf32:
  case Format::s32:
    return 32;
  case Format::f16:
  case Format::bf16:
    return 16;
  default:
    return 8;
  }
}

const double* values_of_8_bits(Format f) {
  static const auto table = [](Format format) {
    std::array<double, 256> all;
    for (size_t i = 0; i < 256; ++i) all[i] = decode_small(small(format), i);
    return all;
  };
  static const std::array<double, 256> e4m3 = table(Format::e4m3), e5m2 = table(Format::e5m2);
  return (f == Format::e4m3 ? e4m3 : e5m2).data();
}

uint64_t encode_narrow(Format f, double x, bool saturate) {
  switch (f) {
  case Format::tf32: {
    const uint32_t bits = uint32_t(to_bits(float(x)));
    return std::isfinite(x) ? (bits + 0x1000u) & 0xffffe000u : bits;
  }
  case Format::s8:
    return std::isnan(x) ? 0 : uint8_t(int8_t(std::clamp(std::nearbyint(x), -128.0, 127.0)));
  case Format::u8:
    return std::isnan(x) ? 0 : uint8_t(std::clamp(std::nearbyint(x), 0.0, 255.0));
  case Format::s32:
    return uint32_t(int32_t(std::clamp(std::nearbyint(x), -0x1p31, 0x1p31 - 1)));
  default:
    return encode_small(small(f), x, saturate);
  }
}

} // namespace deepgen::ptx_sim
