// The GPUs that the drivers show.
#pragma once

#include "base/kernel/device.h"
#include "measure/devices/cuda_driver.h"

#include <vector>

namespace deepgen::cuda {

/// In the driver's order, which CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES sets; their arch is
/// sm_<capability> without a suffix, or gfx<number> without settings, which are features then. Empty without
/// a driver. The driver is asked in a child process: this one stays able to fork, and outlives a driver that
/// hangs or fails, which a line on stderr then tells.
std::vector<Device> devices(Platform);

/// The first device of the arch (sm_90 and sm_90a: of compute capability 9.0); the arch's usual facts, not
/// present, when there is none. Throws Error for an arch that is not known.
Device find(const std::string& arch);

/// For the worker: the driver's number of the device with this UUID. Throws Error when it is gone.
int ordinal_of(const std::string& uuid);

} // namespace deepgen::cuda
