// Check: a kernel's launches on the simulated device, held against an f64 reference within the project's
// tolerance (measure/cuda_tolerance.h).
#pragma once

#include "base/kernel.h"
#include "measure/cuda_verify.h"

namespace deepgen::ptx_sim {

struct Outcome {
  std::string fault; ///< what is wrong; empty: nothing
  double error = 0;  ///< the largest, in tolerances
};

Outcome check_case(const Kernel&, const cuda::CallCase&, uint64_t seed);
/// The cases of a kernel that the seed chooses: the strictest one, and one more.
std::vector<cuda::CallCase> chosen_cases(const Problem&, uint64_t seed);

} // namespace deepgen::ptx_sim
