#include "tests/amx_emu/amx_products.h"

#include <cmath>
#include <cstring>
#include <limits>

// Whoever runs kernels with AMX has AVX-512, and so multiply-adds.
#define DEEPGEN_HAS_FMA __attribute__((target("fma")))

namespace deepgen::amx {
namespace {

template <typename T>
T element(const Machine::Row& row, int index) {
  T x;
  std::memcpy(&x, row.data() + size_t(index) * sizeof(T), sizeof(T));
  return x;
}

/// Zero in place of what is subnormal, of operands as of results.
DEEPGEN_HAS_FMA inline float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
DEEPGEN_HAS_FMA inline float number(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float x;
  std::memcpy(&x, &wide, 4);
  return flushed(x);
}

DEEPGEN_HAS_FMA void multiply_bf16(const TileSizes& size, Machine::Tile& sums, const Machine::Tile& left,
                                   const Machine::Tile& right) {
  for (int m = 0; m < size.rows; ++m)
    for (int n = 0; n < size.columns; ++n) {
      float even = 0, odd = 0; // apart up to the end
      for (int k = 0; k < size.words; ++k) {
        const auto &a = left[size_t(m)], &b = right[size_t(k)];
        even = flushed(
            __builtin_fmaf(number(element<uint16_t>(a, 2 * k)), number(element<uint16_t>(b, 2 * n)), even));
        odd = flushed(__builtin_fmaf(number(element<uint16_t>(a, 2 * k + 1)),
                                     number(element<uint16_t>(b, 2 * n + 1)), odd));
      }
      auto& row = sums[size_t(m)];
      const float sum = flushed(flushed(element<float>(row, n)) + flushed(even + odd));
      std::memcpy(row.data() + 4 * n, &sum, 4);
    }
}

template <typename A, typename B>
void multiply_bytes(const TileSizes& size, Machine::Tile& sums, const Machine::Tile& left,
                    const Machine::Tile& right) {
  for (int m = 0; m < size.rows; ++m)
    for (int n = 0; n < size.columns; ++n) {
      auto& row = sums[size_t(m)];
      auto sum = element<uint32_t>(row, n); // modulo 2^32
      for (int k = 0; k < size.words; ++k)
        for (int i = 0; i < 4; ++i)
          sum += uint32_t(int32_t(element<A>(left[size_t(m)], 4 * k + i)) *
                          int32_t(element<B>(right[size_t(k)], 4 * n + i)));
      std::memcpy(row.data() + 4 * n, &sum, 4);
    }
}

} // namespace

void multiply_tiles(Op op, const TileSizes& size, Machine::Tile& sums, const Machine::Tile& left,
                    const Machine::Tile& right) {
  switch (op) {
  case Op::bf16:
    return multiply_bf16(size, sums, left, right);
  case Op::bytes_ss:
    return multiply_bytes<int8_t, int8_t>(size, sums, left, right);
  case Op::bytes_su:
    return multiply_bytes<int8_t, uint8_t>(size, sums, left, right);
  case Op::bytes_us:
    return multiply_bytes<uint8_t, int8_t>(size, sums, left, right);
  default:
    return multiply_bytes<uint8_t, uint8_t>(size, sums, left, right);
  }
}

} // namespace deepgen::amx
