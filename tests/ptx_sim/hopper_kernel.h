// Kernels of hopper_ws for the simulated device, and faults that tests plant in them.
#pragma once

#include "generator/compile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

namespace deepgen {

/// As PTX alone, which is all that the simulator reads.
inline Kernel compile_hopper(const std::string& problem, const std::string& config) {
  setenv("DEEPGEN_PTXAS", "none", 1);
  const KernelFile file = compile_candidate(Problem::parse(problem), "sm_90a",
                                            {"hopper_ws", Config::parse(config)}, false, false);
  EXPECT_EQ(file.status, "ok") << file.detail;
  return *file.find("main");
}

/// The code with all that the pattern matches replaced; it must match something.
inline std::string with(const std::string& ptx, const char* pattern, const char* by) {
  const std::string changed = std::regex_replace(ptx, std::regex(pattern), by);
  EXPECT_NE(changed, ptx) << pattern;
  return changed;
}

} // namespace deepgen
