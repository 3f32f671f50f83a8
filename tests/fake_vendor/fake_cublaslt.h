// A cuBLASLt that multiplies nothing, and records what it is asked for. It says that it is version 13.1.0.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fake_cublaslt {

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  std::map<int, int64_t> attributes;
};

struct Call {
  void* handle;
  int compute, scale;
  std::map<int, uint64_t> attributes; ///< of the multiplication
  uint64_t alpha, beta;               ///< the first 4 bytes, or 8 of f64
  const void *a, *b, *c, *d, *workspace, *stream;
  Layout a_layout, b_layout, c_layout, d_layout;
  std::array<uint64_t, 8> algorithm;
  size_t workspace_bytes;
  int capture_mode; ///< of the thread, as the fake driver has it
};

struct State {
  std::mutex mutex;
  size_t version = 130100;
  std::map<std::string, int> results; ///< by function: fails with this
  int (*capture_mode)() = nullptr;
  std::vector<Call> calls;
  int handles = 0, alive = 0; ///< handles made; layouts and descriptions that were not destroyed
};
State& state();
void reset();

} // namespace fake_cublaslt
