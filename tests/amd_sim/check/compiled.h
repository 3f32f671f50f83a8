// Compiled: a candidate for an AMD GPU as the simulator takes it: the kernel's description, and the LLVM IR
// that the backend would get. No machine code is made.
#pragma once

#include "base/kernel/kernel.h"

namespace deepgen::amd_sim {

struct Compiled {
  Kernel kernel;
  std::string ir;
};

/// Throws Error, as the compiler does.
Compiled compile(const Problem&, const std::string& arch, const Choice&);

} // namespace deepgen::amd_sim
