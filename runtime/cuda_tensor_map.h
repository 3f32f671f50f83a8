// Tensor maps of one call's operands. Internal.
#pragma once

#include "runtime/arguments.h"
#include "runtime/cuda_driver.h"

namespace deepgen::nvidia {

constexpr uint32_t map_slots = DEEPGEN_ARG_COUNT - DEEPGEN_ARG_MAP_A;

/// The operand of a map's slot: DEEPGEN_ARG_A for DEEPGEN_ARG_MAP_A.
deepgen_arg mapped_operand(uint8_t map_slot);

constexpr uint32_t most_maps = 8 + 8 + map_slots - 2; ///< eight phases of A and of B, one map of others

/// The maps of one call; those of one operand in a row.
struct EncodedMaps {
  TensorMap maps[most_maps];
  TensorMap* of_slot[map_slots]; ///< by slot after DEEPGEN_ARG_MAP_A, where the kernel has such a map
};

/// Encodes the kernel's maps. invalid_value: the hardware cannot address these operands, so the call needs another kernel.
/// With `reads_c` false, the map of C is that of D.
Result encode_maps(const Driver&, const deepgen_function&, const deepgen_kernel&, const ArgumentValues&,
                   bool reads_c, EncodedMaps& out);

} // namespace deepgen::nvidia
