// Launch: one grid on the simulated device. Blocks run one after another in random order (of their numbers
// where they wait for flags of others), those of a cluster together; warps run in random order, each up to a
// point where it must wait. The same seed gives the same run.
#pragma once

#include "tests/ptx_sim/machine/global_memory.h"

#include <array>
#include <string>
#include <vector>

namespace deepgen::ptx_sim {

struct LaunchShape {
  std::string entry;
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  int64_t shared = 0;
  bool dependent = false;
};

/// `arguments`: the bytes of each parameter in order. Throws Fault: what went wrong, with the place in the
/// PTX.
void run_launch(const std::string& ptx, const LaunchShape& shape,
                const std::vector<std::vector<uint8_t>>& arguments, GlobalMemory& memory, uint64_t seed);

} // namespace deepgen::ptx_sim
