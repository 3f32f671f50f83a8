// Which of a library's kernels were verified before they are linked.
#pragma once

#include "base/kernel/kernel.h"

namespace deepgen {

/// Whether a search has verified the kernel: its winner, or the lock's with the code that the lock has. Not
/// what comes by default, fallbacks, or what the lock's config compiles to with another compiler.
inline bool vouched_for(const KernelFile& file, const Kernel& kernel) {
  return kernel.role == "main" && (file.origin == "lock" || file.origin == "search");
}
/// KernelFile::origin of the lock's config with other code.
constexpr const char* kOtherCode = "lock, other code";

} // namespace deepgen
