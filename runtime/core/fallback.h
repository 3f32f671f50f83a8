// Whether a vendor's library runs in place of a kernel, and why not. Internal.
#pragma once

#include "runtime/core/abi.h"

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

enum class Fallback : uint32_t {
  unknown, ///< nobody has looked yet
  runs,
  off,           ///< DEEPGEN_FALLBACK=off in the environment
  other_device,  ///< it was timed on another one
  absent,        ///< the library is not here, or lacks a function
  other_version, ///< here is another one than was timed
  threads,       ///< CPU: the library would start threads of its own
  refused,       ///< it does not take the problem, or has no memory
  failed         ///< a call failed
};

/// A sentence; null for `unknown`.
const char* text_of(Fallback);

/// DEEPGEN_FALLBACK=off: for comparisons, and to find out whose fault something is.
bool is_forced_off();

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
