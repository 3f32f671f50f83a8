// Launch: one grid on the simulated device. Workgroups run one after another in random order, their waves in
// random order, each up to a barrier. The same seed gives the same run.
#pragma once

#include "tests/ptx_sim/machine/global_memory.h"

#include <array>
#include <string>
#include <vector>

namespace deepgen::amd_sim {

struct LaunchShape {
  std::string entry;
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1}; ///< grid: in workgroups
  int64_t shared = 0;                                   ///< dynamic LDS, bytes
};

/// LDS accesses of one instruction of the kernel, over all waves.
struct LdsAccess {
  std::string instruction;
  bool write = false;
  uint32_t bytes = 0; ///< of one lane
  uint64_t accesses = 0;
  double conflict_factor = 1; ///< clocks taken over clocks without bank conflicts
};

struct Report {
  std::vector<LdsAccess> lds;
  uint64_t matrix_operations = 0;
};

/// `ir`: text of an LLVM module for `arch` as it is before the backend; `arguments`: the bytes of each
/// parameter in order. Throws Fault: what went wrong, with the place in the IR.
Report run_launch(const std::string& ir, const std::string& arch, const LaunchShape& shape,
                  const std::vector<std::vector<uint8_t>>& arguments, ptx_sim::GlobalMemory& memory,
                  uint64_t seed);

class Program;
/// The same of IR that was read before, for the device's arch.
Report run_launch(const Program&, const LaunchShape& shape,
                  const std::vector<std::vector<uint8_t>>& arguments, ptx_sim::GlobalMemory& memory,
                  uint64_t seed);

} // namespace deepgen::amd_sim
