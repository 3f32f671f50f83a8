// Which kernels of a function an NVIDIA device runs. Internal.
#pragma once

#include "runtime/gpu/gpu_select.h"
#include "runtime/gpu/lt_call.h"
#include "runtime/nvidia/cublas_lt.h"
#include "runtime/nvidia/cuda_load.h"

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// Better is lower: tuned on a device of this name; for this device's arch or an earlier one of its major
/// version; PTX. Within each, the latest arch. Equals keep the order of the table.
uint32_t standing(const deepgen_kernel&, const Device&);

struct Vendor {
  using Driver = nvidia::Driver;
  using Device = nvidia::Device;
  using PreparedLaunch = nvidia::PreparedLaunch;
  using PreparedCall = LtCall;
  static const Driver* driver(deepgen_status* why_none) { return nvidia::driver(why_none); }
  static bool is_arch(const char* arch) { return capability(arch); }
  static bool well_formed(const deepgen_kernel& k, const deepgen_function& f) {
    return nvidia::well_formed(k, f);
  }
  static uint32_t standing(const deepgen_kernel& k, const Device& device) {
    return nvidia::standing(k, device);
  }
  static Result current_device(const Driver& d, int* device) { return d.context_device(device); }
  static Result device_count(const Driver& d, int* count) { return d.device_count(count); }
  static Result describe(const Driver& d, int ordinal, Device& device) {
    return nvidia::describe(d, ordinal, device);
  }
  static Result load(const Driver& d, const Device& device, const deepgen_kernel& k,
                     PreparedLaunch* launches) {
    return nvidia::load(d, device, k, launches);
  }
  static bool concerns_code(Result r) { return nvidia::concerns_code(r); }
  static void unload(const Driver& d, const deepgen_gpu_code& code) { nvidia::unload(d, code); }
  static PreparedCall* prepare_call(const Driver&, const deepgen_function& f, const deepgen_kernel& k,
                                    const Device& device, Fallback& why) {
    return deepgen::prepare_call(f, *k.vendor, {device.name, device.ordinal}, find_lt, why);
  }
  static void discard(PreparedCall* call) { deepgen::discard(call); }
  static Fallback state_of(const PreparedCall& call) { return deepgen::state_of(call); }
  static deepgen_status failure(Result r) { return nvidia::failure(r); }
};

using Selection = GpuSelection<Vendor>;
using PreparedKernel = Selection::PreparedKernel;
using Choice = Selection::Choice;

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
