// Code on an AMD or Hygon device: which code it can run, and kernels made ready to launch. Internal.
#pragma once

#include "deepgen/kernel_abi.h"
#include "runtime/amd/hip_driver.h"
#include "runtime/amd/hipblas_lt.h"
#include "runtime/gpu/gpu_select.h"
#include "runtime/gpu/lt_call.h"

namespace deepgen::amd {
inline namespace DEEPGEN_ABI_NAMESPACE {

struct Device {
  int ordinal = 0;
  int compute_units = 0;
  char target[64] = {}; ///< "gfx942:sramecc+:xnack-"
  char name[256] = {};
};
Result describe(const Driver&, int ordinal, Device&);

/// Whether an arch is one of these: "gfx942".
bool is_arch(const char* arch);
/// Whether code for one target id runs on a device of another: the same processor, and every setting that the
/// code names is the device's. Code that names none runs with both.
bool runs_on(const char* target, const char* device);

struct PreparedLaunch {
  Function function;
  uint32_t grid[3], block[3], shared;
};

/// Whether the description can be worked with.
bool well_formed(const deepgen_kernel&, const deepgen_function&);

/// Better is lower: tuned on a device of this name; for this device's arch. Within each, what names more
/// settings of it.
uint32_t standing(const deepgen_kernel&, const Device&);

/// Loads the kernel's code for the current device, which `device` describes, and fills in `launches`. Not
/// thread-safe.
Result load(const Driver&, const Device&, const deepgen_kernel&, PreparedLaunch* launches);
/// Of a result of load(): not this kernel, try another one.
bool concerns_code(Result);
/// Gives back what load() keeps for the code. Not thread-safe.
void unload(const Driver&, const deepgen_gpu_code&);

struct Vendor {
  using Driver = amd::Driver;
  using Device = amd::Device;
  using PreparedLaunch = amd::PreparedLaunch;
  using PreparedCall = LtCall;
  static const Driver* driver(deepgen_status* why_none) { return amd::driver(why_none); }
  static bool is_arch(const char* arch) { return amd::is_arch(arch); }
  static bool well_formed(const deepgen_kernel& k, const deepgen_function& f) {
    return amd::well_formed(k, f);
  }
  static uint32_t standing(const deepgen_kernel& k, const Device& device) { return amd::standing(k, device); }
  static Result current_device(const Driver& d, int* device) { return d.get_device(device); }
  static Result device_count(const Driver& d, int* count) { return d.device_count(count); }
  static Result describe(const Driver& d, int ordinal, Device& device) {
    return amd::describe(d, ordinal, device);
  }
  static Result load(const Driver& d, const Device& device, const deepgen_kernel& k,
                     PreparedLaunch* launches) {
    return amd::load(d, device, k, launches);
  }
  static bool concerns_code(Result r) { return amd::concerns_code(r); }
  static void unload(const Driver& d, const deepgen_gpu_code& code) { amd::unload(d, code); }
  static PreparedCall* prepare_call(const Driver& d, const deepgen_function& f, const deepgen_kernel& k,
                                    const Device& device, Fallback& why) {
    LoadsDuringCapture loads(d); // what the library does when it is asked for an algorithm, too
    return deepgen::prepare_call(f, *k.vendor, {device.name, device.ordinal}, find_lt, why);
  }
  static void discard(PreparedCall* call) { deepgen::discard(call); }
  static Fallback state_of(const PreparedCall& call) { return deepgen::state_of(call); }
  static deepgen_status failure(Result r) { return amd::failure(r); }
};

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::amd
