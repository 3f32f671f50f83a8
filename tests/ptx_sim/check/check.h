// Check: a kernel's launches on the simulated device, held against an f64 reference within the project's
// tolerance (measure/gpu/cuda_tolerance.h).
#pragma once

#include "base/kernel/kernel.h"
#include "measure/gpu/cuda_verify.h"
#include "tests/ptx_sim/machine/global_memory.h"

#include <functional>

namespace deepgen::ptx_sim {

struct Outcome {
  std::string fault; ///< what is wrong; empty: nothing
  double error = 0;  ///< the largest, in tolerances
};

/// Runs one launch of a kernel on a simulated device. Throws Fault.
using Runner = std::function<void(const Launch&, const std::vector<std::vector<uint8_t>>& arguments,
                                  GlobalMemory&, uint64_t seed)>;

/// The simulated NVIDIA device.
Runner runner(const Kernel&);

Outcome check_case(const Kernel&, const cuda::CallCase&, uint64_t seed);
/// The same on another device.
Outcome check_case(const Kernel&, const cuda::CallCase&, uint64_t seed, const Runner&);
/// The cases of a kernel that the seed chooses: the strictest one, and one more.
std::vector<cuda::CallCase> chosen_cases(const Gemm&, uint64_t seed);

/// One check of a kernel, whatever its operator.
struct Check {
  std::string name;
  std::function<Outcome(const Runner&)> on;
};
/// Of a GEMM the chosen cases, or all; of rows all in any case. They refer to the kernel.
std::vector<Check> checks(const Kernel&, uint64_t seed, bool all);

} // namespace deepgen::ptx_sim
