// Devices of the fake driver, and what was asked of it.
#pragma once

#include "fake_cuda.h"

namespace deepgen::cuda_tests {

inline fake_cuda::Device h100() { return {.name = "NVIDIA H100", .major = 9, .minor = 0}; }
inline fake_cuda::Device h200() { return {.name = "NVIDIA H200", .major = 9, .minor = 0}; }
inline fake_cuda::Device a100() {
  return {.name = "NVIDIA A100", .major = 8, .minor = 0, .multiprocessors = 108};
}

inline int calls(const char* entry_point) { return fake_cuda::state().calls[entry_point]; }

} // namespace deepgen::cuda_tests
