// SimulatedMap: what stands in the 128 bytes of a tensor map on the simulated device.
#pragma once

#include "base/kernel/kernel.h"

#include <cstdint>

namespace deepgen::ptx_sim {

struct SimulatedMap {
  static constexpr uint64_t known = 0x70616d5f6d6973;
  uint64_t magic = known, base = 0;
  uint32_t element_bytes = 1, rank = 2;
  uint32_t swizzle = 0; ///< bytes: 0 (none), 32, 64 or 128
  uint32_t padding = 0;
  uint64_t sizes[5] = {1, 1, 1, 1, 1}; ///< elements, innermost first
  uint64_t pitches[4] = {};            ///< bytes, of dimension 1 and on
  uint32_t box[5] = {1, 1, 1, 1, 1};
  uint32_t more_padding = 0;
};
static_assert(sizeof(SimulatedMap) == 128);

/// Throws Fault for what cuTensorMapEncodeTiled refuses.
void check_map(const SimulatedMap&);

/// As the runtime encodes it (runtime/nvidia/cuda_tensor_map.cpp); `pitches` in bytes.
SimulatedMap make_tensor_map(uint64_t base, uint32_t element_bytes, uint32_t rank, const uint64_t* sizes,
                             const uint64_t* pitches, const TensorMap&);
/// `steps`: leading dimension and batch stride, in elements.
SimulatedMap make_tensor_map(uint64_t base, uint32_t element_bytes, uint32_t rank, const int64_t* sizes,
                             const int64_t* steps, const TensorMap&);

} // namespace deepgen::ptx_sim
