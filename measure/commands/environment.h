// Whether, and under which conditions, something can be measured on a device.
#pragma once

#include "base/json/json_fwd.h"
#include "base/kernel/device.h"
#include "measure/race/options.h"

#include <cstdint>
#include <string>

namespace deepgen {

/// What ratios of times on this CPU may differ by, though a kernel beside itself does not. On a virtual
/// machine others may share a core's units and caches for seconds, which slows some kernels more than others.
double least_noise_of_cpu();

/// The lock under which anything is timed on the CPU, whoever builds.
std::string timing_lock_path();

/// What times on the device depend on besides its model, as JSON: driver and power limit of a GPU that is
/// there.
std::string surroundings_text(const Device& device);

/// The first line of a log: on what and how its records were measured, with calls on so many threads.
Json environment(const Device& device, const std::string& anchor, int threads = 1);
/// Throws Error unless the device can be measured on and is there.
void check_device(const Device& device, const std::string& where, Caches caches);
/// What is tuned for on it: a CPU has no regimes, whatever was asked for.
TunedFor regime_on(const Device& device, const MeasureOptions&);
/// The level that both the description and this CPU have; no limit for GPUs.
int64_t runnable_isa(const Device& device);

} // namespace deepgen
