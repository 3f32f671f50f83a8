// The simulated device as a library that FAKE_HIP_HOOK can name: whole programs run their kernels on it.
#include "tests/amd_sim/hip/hip_hook.h"

extern "C" int fake_hip_run(const fake_hip_launch* launch) {
  return deepgen::amd_sim::run_on_simulator(launch);
}
