// Locked: whether the kernels that a frozen build links are those of the lock.
#pragma once

#include "base/kernel/kernel.h"
#include "generator/lock/select.h"

namespace deepgen {

/// Throws Error unless the file's main kernels have the configs and the code, by its SHA-256, of a choice
/// that a frozen build takes from the lock. A problem that is never tuned has no entry, and any kernels.
void check_locked(const KernelFile&, const ChoiceFile&);

/// The same for all kernel files of functions: what select() gives for them in frozen mode is the choice.
struct EmbeddedFile {
  ProblemFile function;
  KernelFile kernels;
};
void check_locked(const std::string& lock_path, const std::vector<EmbeddedFile>&);

} // namespace deepgen
