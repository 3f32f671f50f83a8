// Values of any type in memory as vectors of f32 in registers, on every x86-64 level: where a level has no
// conversion, integer arithmetic rounds to nearest even.
#pragma once

#include "templates/ir/ir_builder.h"

namespace deepgen {

/// The address of element `index` of an array of `type`.
Value element_at(Ir&, Type, Value base, Value index);

/// As many as the kernel's vector has lanes: f32, f16 or bf16. The first `count` lanes; the others are zero
/// and not read.
Value load_values(Ir&, Type, Value address, int64_t count);

/// f32, f16 or bf16, rounded to nearest even; e4m3 and i8, for which the values lie within the range of the
/// type or are NaN (e4m3: NaN; i8: 0). Writes `count` lanes. `aligned`: to the vector's bytes in memory, and
/// then past the caches.
void store_values(Ir&, Type, Value, Value address, int64_t count, bool aligned = false);
/// How f32 become bf16. By the instruction of AVX512-BF16, results below 2^-126 are zero.
enum class Bf16Rounding { bits, instruction };
/// As store_values(), of bf16.
void store_bf16_values(Ir&, Value, Value address, int64_t count, Bf16Rounding);
/// Two vectors that follow each other, all lanes.
void store_bf16_pair(Ir&, Value first, Value second, Value address, Bf16Rounding);
/// What an aligned store of a whole vector is aligned to.
int64_t stored_bytes(const Ir&, Type);
/// Makes the stores that went past the caches visible to other threads before what follows.
void finish_stores(Ir&);

/// The value where lane < count, else `rest`.
Value first_lanes(Ir&, Value, int64_t count, double rest);

} // namespace deepgen
