// What rows are timed beside, on one thread.
#pragma once

#include "../cpu/rounds.h"

#include <deepgen/runtime.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

struct RowsProblem {
  const char *name, *kind, *type;
  int64_t m, n;
  deepgen_status (*run)(const deepgen_rows_args*);
  const deepgen_function* function;
  int64_t element() const { return std::string(type) == "f32" ? 4 : 2; }
  int64_t bytes() const { return m * n * element(); } ///< of X, and of D
};

/// On cache lines, as tensors of frameworks are.
template <typename T>
struct OnLines {
  using value_type = T;
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
  bool operator==(const OnLines&) const { return true; }
  bool operator!=(const OnLines&) const { return false; }
};
using Bytes = std::vector<char, OnLines<char>>;

struct RowsOperands {
  Bytes x, scale, bias, d;
  std::vector<float> wide_scale, wide_bias; ///< the same in f32, as oneDNN takes them
};

/// f32, or bf16 by its bits.
inline float element(const Bytes& data, int64_t size, int64_t i) {
  uint32_t bits = 0;
  std::memcpy(reinterpret_cast<char*>(&bits) + 4 - size, data.data() + i * size, size_t(size));
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/// Reads X and D, once each: as many bytes as a call moves, from the same places.
Arm reading_arm(const RowsOperands&);
/// X to D by memcpy: what a call would take that computes nothing.
Arm copying_arm(RowsOperands&);
/// Softmax or layer_norm; none where oneDNN does not serve the problem.
std::vector<Arm> onednn_arms(const RowsProblem&, RowsOperands&);
