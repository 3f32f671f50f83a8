// What this CPU and its operating system can execute, from CPUID and XGETBV. Internal to the runtime and
// measure/.
#pragma once

#include "runtime/core/abi.h"

#include <cstdint>

namespace deepgen::cpu {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// The x86-64 level (1..4, System V psABI); 0 on another architecture. Not lowered by DEEPGEN_CPU_LEVEL.
uint32_t hardware_level();

/// The level and the extensions that a kernel may use here, as deepgen_kernel::isa has them.
/// DEEPGEN_CPU_LEVEL lowers it: "3" is that level alone, "3+" has the extensions, too, that go with it.
uint32_t usable_isa();

/// "AMD EPYC 9654": the brand string of CPUID without the spaces around it; empty where there is none.
/// /proc/cpuinfo may have another one: a kernel that boots under a hypervisor notes what it was told then.
struct ModelName {
  char text[49] = {};
  ModelName();
};
bool is_model(const char* name);

/// Writes the names of the features that are present and usable, sorted, and returns how many there are.
/// Names are those of GCC and LLVM ("avx2", "avx512f", "fma").
inline constexpr unsigned max_features = 64;
unsigned features(const char* (&names)[max_features]);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::cpu
