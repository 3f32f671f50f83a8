// The library that the groups of `embed` and `bundle` describe.
#pragma once

#include "generator/cli/groups.h"
#include "generator/embed/embed.h"

namespace deepgen {

struct LibraryInput {
  std::string target, header; ///< header: a path, of which the name counts
  std::string lock;           ///< of a frozen build; empty: none
};

struct LibraryOutput {
  Library library;
  std::map<std::string, std::string> toolchain; ///< SHA-256 of a kernel's code to what made it
};

/// Reads the kernels of all groups, from kernel files (--kernel) or from beside the lock (--vendored). Throws
/// Error unless they make a library, and, with a lock, are those that it names.
LibraryOutput read_library(const LibraryInput&, const std::vector<Group>&);

std::string file_name(const std::string& path);

} // namespace deepgen
