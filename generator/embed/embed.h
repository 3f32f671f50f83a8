// Embed: the header and source of a tuned library, from its problems and their compiled kernels.
#pragma once

#include "base/kernel/kernel.h"
#include "generator/lock/exchange.h"

#include <set>

namespace deepgen {

/// One function of the library and its kernel files, one an arch.
struct LibraryFunction {
  ProblemFile file;
  std::vector<KernelFile> kernels;
  std::set<std::string> verified = {}; ///< SHA-256 of code that the build has verified
  std::vector<LinkedCall> calls = {};  ///< of vendors' libraries, beside kernels
};

struct Library {
  std::string target;
  std::string header_name; ///< file name, as the user includes it
  std::vector<LibraryFunction> functions;
};

/// A function of which no kernel is compiled yet: enough for a header.
LibraryFunction declared(ProblemFile, const std::vector<std::string>& archs);

/// Throws Error when names are no identifiers or clash, or an arch is unknown.
void validate_names(const Library&);
/// As validate_names(), and when a kernel file is not of its problem or not compiled.
void validate(const Library&);
/// C99 and C++17. The text depends on the arguments alone: no dates, no paths. The header depends on problems
/// and archs, and not on what kernels were chosen.
std::string embed_header(const Library&);
std::string embed_source(const Library&);

/// One row of a function's table of kernels.
struct LinkedKernel {
  const KernelFile* file;
  const Kernel* kernel;
  bool verified; ///< by the build
};
/// What the library links of a function, without "awkward" kernels, as the runtime wants it: the CPU's, best
/// level first; then the GPU archs from the latest on: kernels tuned on one device, the arch's general one,
/// those for less aligned operands.
std::vector<LinkedKernel> linked_kernels(const LibraryFunction&);
bool runs_on_cpu(const LibraryFunction&);
bool runs_on_gpus(const LibraryFunction&);

} // namespace deepgen
