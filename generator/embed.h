// Embed: the header and source of a tuned library, from its problems and their compiled kernels.
#pragma once

#include "base/kernel.h"
#include "generator/exchange.h"

namespace deepgen {

/// One GEMM of the library and its kernel files, one an arch.
struct LibraryFunction {
  ProblemFile file;
  std::vector<KernelFile> kernels;
};

struct Library {
  std::string target;
  std::string header_name; ///< file name, as the user includes it
  std::vector<LibraryFunction> functions;
};

/// Throws Error when names are no identifiers or clash, or a kernel file is not of its problem or not
/// compiled.
void validate(const Library&);
/// C99 and C++17. The text depends on the arguments alone: no dates, no paths.
std::string embed_header(const Library&);
std::string embed_source(const Library&);

/// The kernels of a function that the library links, best (highest isa) first: "main" and "fallback" roles.
std::vector<const Kernel*> linked_kernels(const LibraryFunction&);

} // namespace deepgen
