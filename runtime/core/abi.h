// What keeps runtimes of different versions apart in one process, and a runtime from structs of another.
// Internal.
#pragma once

#include "deepgen/kernel_abi.h"
#include "deepgen/runtime.h"

#include <cstring>

#define DEEPGEN_PASTED(prefix, abi) prefix##abi
#define DEEPGEN_PASTE(prefix, abi) DEEPGEN_PASTED(prefix, abi)
/// All of the runtime is in it: two runtimes may be linked into one program.
#define DEEPGEN_ABI_NAMESPACE DEEPGEN_PASTE(abi, DEEPGEN_ABI)

#if defined(__clang__)
#define DEEPGEN_CALLS_MACHINE_CODE __attribute__((no_sanitize("cfi-icall")))
#else
#define DEEPGEN_CALLS_MACHINE_CODE
#endif

/// Initialised before anything runs. A bundle's runtime is C++17, which cannot say so; its compiler does it
/// all the same.
#if defined(__cpp_constinit)
#define DEEPGEN_CONSTINIT constinit
#else
#define DEEPGEN_CONSTINIT
#endif

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// Whether a struct has the layout of this runtime's headers; otherwise no other member may be read.
template <typename Args>
bool is_current(const Args& args) {
  return args.size == sizeof args && args.abi == DEEPGEN_ABI_TAG;
}
inline bool is_current(const deepgen_function& function) {
  constexpr deepgen_layout own = DEEPGEN_LAYOUT;
  return std::memcmp(&function.layout, &own, sizeof own) == 0;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
