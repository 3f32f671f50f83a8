// Vendored: compiled kernels that are kept beside the lock, so that a frozen build needs no compiler of ours.
// An entry of the lock has the SHA-256 of all that a build links of it: its kernel with launches and tensor
// maps, the fallbacks, and which of these were verified. So the lock decides every byte.
#pragma once

#include "base/kernel/kernel.h"
#include "generator/lock/exchange.h"
#include "generator/lock/lock.h"

#include <set>

namespace deepgen {

/// What is kept of one entry.
struct VendoredKernels {
  KernelFile kernels;              ///< "main" and fallbacks; of a problem with ranges several main ones
  std::set<std::string> verified;  ///< SHA-256 of code that was verified when this was made
  std::string toolchain{};         ///< that made them, for messages
  std::vector<LinkedCall> calls{}; ///< of what vendored_for() gives; the lock has them, and not the file

  /// What is hashed: a line of JSON, then the kernel file.
  std::string serialize() const;
  static VendoredKernels parse(const std::string& text, const std::string& where);
};

/// zstd. Another version of it may give other bytes, so names and hashes are those of the text.
std::string packed(const std::string& text);
std::string unpacked(const std::string& bytes, const std::string& where);

/// "deepgen.kernels" beside "deepgen.lock.json"; "x-kernels" beside a lock of any other name "x".
std::string vendored_folder(const std::string& lock_path);
/// The file of an entry's `kernels`, which must be a SHA-256.
std::string vendored_path(const std::string& lock_path, const std::string& sha256);

/// The kernels of an entry. Throws Error unless they are, byte by byte, those that the entry names.
VendoredKernels read_vendored(const std::string& lock_path, const LockEntry&);

/// What a frozen build links of a function on an arch, from the lock alone: of the CPU the entry of the
/// highest level, then the first by name; of a GPU all entries of the arch. Whether an entry is stale does
/// not matter: its kernels are there. Throws Error when there is none, or one has no kernels.
VendoredKernels vendored_for(const Lock&, const std::string& lock_path, const ProblemFile&,
                             const std::string& arch);

} // namespace deepgen
