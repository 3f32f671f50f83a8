// Floats: the types of LLVM IR as bits. f16 and bf16 are computed in f32 and rounded once.
#pragma once

#include "tests/ptx_sim/program/numbers.h"

#include <array>
#include <cmath>

namespace deepgen::amd_sim {

struct F32 {
  using T = float;
  static T get(uint64_t b) { return std::bit_cast<float>(uint32_t(b)); }
  static uint64_t put(T x) { return std::bit_cast<uint32_t>(x); }
};

struct F64 {
  using T = double;
  static T get(uint64_t b) { return std::bit_cast<double>(b); }
  static uint64_t put(T x) { return std::bit_cast<uint64_t>(x); }
};

struct Bf16 {
  using T = float;
  static T get(uint64_t b) { return std::bit_cast<float>(uint32_t(b << 16)); }
  static uint64_t put(T x) {
    const auto b = std::bit_cast<uint32_t>(x);
    return std::isnan(x) ? 0x7fff : (b + 0x7fff + (b >> 16 & 1)) >> 16;
  }
};

struct F16 {
  using T = float;
  static T get(uint64_t b) {
    static const auto all = [] {
      std::array<float, 65536> table;
      for (size_t i = 0; i < table.size(); ++i) table[i] = float(ptx_sim::decode(ptx_sim::Format::f16, i));
      return table;
    }();
    return all[b & 0xffff];
  }
  static uint64_t put(T x) { return ptx_sim::encode(ptx_sim::Format::f16, x); }
};

/// Calls f with the struct of a kind as float_kind() numbers them.
template <typename F>
decltype(auto) with_float(uint32_t kind, const F& f) {
  switch (kind) {
  case 0:
    return f(F16{});
  case 1:
    return f(Bf16{});
  case 2:
    return f(F32{});
  default:
    return f(F64{});
  }
}

} // namespace deepgen::amd_sim
