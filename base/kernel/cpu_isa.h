// What a CPU kernel needs: an x86-64 level, and instructions that no level has. One number, as kernel files
// and the runtime have it (DEEPGEN_ISA_... in kernel_abi.h): the level alone, 1 to 4, or with bits above it.
#pragma once

#include "base/kernel/device.h"

namespace deepgen {

inline constexpr int64_t isa_avxvnni = 0x100, isa_avx512vnni = 0x200, isa_avx512bf16 = 0x400,
                         isa_amx = 0x800; ///< amx-tile, amx-int8 and amx-bf16

inline int64_t level_of(int64_t isa) { return isa & 0xff; }
inline int64_t extensions_of(int64_t isa) { return isa & ~int64_t(0xff); }

/// Of a CPU: its level and those of the extensions above that it has. A device of more than level 4 stands
/// for whatever may come, and has them all.
int64_t isa_of(const Device&);
/// Whether what needs `needed` runs where there is `present`.
inline bool runs_on(int64_t needed, int64_t present) {
  return level_of(needed) <= level_of(present) && !(extensions_of(needed) & ~extensions_of(present));
}
/// Gives the device the features of all extensions that one of its level may have.
void add_features(Device&);
/// Takes the features of extensions that are not in `isa` from the device.
void limit_features(Device&, int64_t isa);
/// What both have.
int64_t common_isa(int64_t, int64_t);
/// "x86-64-v4", "x86-64-v4 with avx512vnni".
std::string isa_text(int64_t isa);
/// As LLVM takes features: "", "+avx512vnni".
std::string isa_features(int64_t isa);

} // namespace deepgen
