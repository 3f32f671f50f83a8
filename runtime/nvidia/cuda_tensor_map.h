// Tensor maps of one call's operands. Internal.
#pragma once

#include "runtime/core/arguments.h"
#include "runtime/nvidia/cuda_driver.h"

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {

constexpr uint32_t matrix_maps = DEEPGEN_ARG_MAP_MULTIPLIER + 1 - DEEPGEN_ARG_MAP_A;
constexpr uint32_t map_slots = matrix_maps + DEEPGEN_ARG_MAP_VALUE + 1 - DEEPGEN_ARG_MAP_Q;

/// The number of a map's slot among all of them: those of attention follow those of matrices.
constexpr uint32_t map_number(uint8_t slot) {
  return slot >= DEEPGEN_ARG_MAP_Q ? matrix_maps + slot - DEEPGEN_ARG_MAP_Q : slot - DEEPGEN_ARG_MAP_A;
}
constexpr uint32_t most_maps = 2 * map_slots; ///< of a kernel: a slot may have an array of them

/// The operand of a map's slot: DEEPGEN_ARG_A for DEEPGEN_ARG_MAP_A.
deepgen_arg mapped_operand(uint8_t map_slot);

/// The maps of one call.
struct EncodedMaps {
  TensorMap maps[most_maps];
  TensorMap* of_slot[map_slots]; ///< the first, by map_number(), where the kernel has such a map
};

/// Encodes the kernel's maps. invalid_value: the hardware cannot address these operands, so the call needs
/// another kernel. With `reads_c` false, the map of C is that of D.
Result encode_maps(const Driver&, const deepgen_function&, const deepgen_kernel&, const ArgumentValues&,
                   bool reads_c, EncodedMaps& out);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
