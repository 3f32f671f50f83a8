// Bundle: a tuned library as a folder of plain sources, which any C++17 compiler builds without DeepGen.
#pragma once

#include "generator/embed/embed.h"

#include <map>

namespace deepgen {

struct BundleInput {
  Library library;
  std::string version = "1.0.0";                ///< of the library, as its packages have it
  std::map<std::string, std::string> toolchain; ///< SHA-256 of a kernel's code to what made it
  std::map<std::string, std::string> headers;   ///< further ones, by file name
};

/// Files by their paths in the folder: the generated header and source, the runtime's sources, how to build,
/// test and install them, a manifest, and the hashes of all of it. The same input gives the same bytes.
std::map<std::string, std::string> bundle_files(const BundleInput&);

/// Writes them. A folder that has anything is taken only if it is a bundle; what the earlier one had and this
/// one has not is removed. Throws Error otherwise.
void write_bundle(const std::string& folder, const std::map<std::string, std::string>& files);

} // namespace deepgen
