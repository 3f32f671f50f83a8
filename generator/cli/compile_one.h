// Compiling a chosen config, for whoever keeps or links the result.
#pragma once

#include "base/kernel/kernel.h"

namespace deepgen {

struct CompileForLinking {
  Problem problem;
  std::string arch;
  Choice choice;
  bool fallbacks = true;       ///< what is linked for lesser devices and less aligned operands, too
  std::string expected_sha256; ///< of the main kernel; what the cache has with another one is not taken
  std::string cache;           ///< folder; empty: the user's
  double timeout = 60;         ///< seconds for the compiler
};
/// The locked config, from the cache or compiled in a child process. A config that cannot
/// be compiled gives a file that says so.
KernelFile compile_for_linking(const CompileForLinking&);

} // namespace deepgen
