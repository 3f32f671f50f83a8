// Code on a device: which code a device can run, and kernels made ready to launch. Internal.
#pragma once

#include "runtime/nvidia/cuda_driver.h"

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {

struct Device {
  int ordinal = 0;
  int capability = 0; ///< 90 for 9.0
  int multiprocessors = 0;
  char name[256] = {};
};
Result describe(const Driver&, int ordinal, Device&);

/// 90 for "sm_90" and "sm_90a"; 0 for what is no arch of NVIDIA's.
int capability(const char* arch);
/// Whether a cubin for `target` runs on the device.
bool runs_on(const char* target, const Device&);
/// Whether the device's driver can compile PTX for `target`.
bool compiles_on(const char* target, const Device&);

struct PreparedLaunch {
  Kernel kernel;
  LaunchConfig config; ///< without the stream
  LaunchAttribute attributes[2];
};

/// Whether the description can be worked with.
bool well_formed(const deepgen_kernel&, const deepgen_function&);

/// Loads the kernel's code, or its PTX where the code does not load, and fills in `launches`, one for each of
/// the kernel's. A result that concerns_code() means: not this kernel, try another one. Not thread-safe.
Result load(const Driver&, const Device&, const deepgen_kernel&, PreparedLaunch* launches);
bool concerns_code(Result);
/// Gives back what load() keeps for the code. Not thread-safe.
void unload(const Driver&, const deepgen_gpu_code&);

/// Loads into the current context what its device has already prepared: the driver would do so at the first
/// launch.
Result load_into_context(const Driver&, const PreparedLaunch&);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
