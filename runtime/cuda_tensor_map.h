// Tensor maps of one call's operands. Internal.
#pragma once

#include "runtime/arguments.h"
#include "runtime/cuda_driver.h"

namespace deepgen::nvidia {

constexpr uint32_t map_slots = DEEPGEN_ARG_COUNT - DEEPGEN_ARG_MAP_A;

/// The operand of a map's slot: DEEPGEN_ARG_A for DEEPGEN_ARG_MAP_A.
deepgen_arg mapped_operand(uint8_t map_slot);

/// Encodes the kernel's maps, each at the place of its slot after DEEPGEN_ARG_MAP_A. invalid_value: the
/// hardware cannot address these operands, so the call needs another kernel. With `reads_c` false, the map of
/// C is that of D.
Result encode_maps(const Driver&, const deepgen_function&, const deepgen_kernel&, const ArgumentValues&,
                   bool reads_c, TensorMap* maps);

} // namespace deepgen::nvidia
