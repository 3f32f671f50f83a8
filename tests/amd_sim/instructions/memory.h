// Memory: what accesses of all kinds of memory share.
#pragma once

#include "tests/amd_sim/machine/workgroup.h"

namespace deepgen::amd_sim {

/// The value of `in.pieces` at `bytes`, into one lane of the result.
void take(Wave&, const Instruction& in, int lane, const uint8_t* bytes);
/// The bytes of one lane of `value`; at most 128.
void give(const Wave&, const Instruction& in, const Operand& value, int lane, uint8_t* bytes);
/// Vector memory instructions that one access becomes.
inline uint32_t operations(uint32_t bytes) { return (bytes + 15) / 16; }
void count_store(Wave&, uint32_t bytes);

} // namespace deepgen::amd_sim
