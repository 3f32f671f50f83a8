// HIP's library behind the table of driver calls: what verifies and times needs no other code for AMD's
// devices.
#pragma once

#include "measure/cuda_driver.h"

namespace deepgen::cuda {

/// Fills the table with calls of HIP in the form of CUDA's. False when there is no ROCm, or it lacks an entry
/// point.
bool load_hip(Driver&);

/// Of a device by its number: "gfx942:sramecc+:xnack-".
std::string hip_target(int ordinal);
/// "GPU-8a3b62f1d9a2f3c4" as rocminfo prints it; a board without one has its place on the bus,
/// "PCI-0000:03:00.0".
std::string hip_uuid(int ordinal);

} // namespace deepgen::cuda
