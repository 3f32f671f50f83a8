#include "runtime/nvidia/cuda_driver.h"

#include "runtime/gpu/driver_library.h"
#include "runtime/gpu/gpu.h"

#include <cstdlib>
#include <dlfcn.h>

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

using GetProcAddress = Result (*)(const char* name, void** address, int version, uint64_t flags, int* found);
constexpr uint64_t legacy_stream =
    1; ///< null means the legacy default stream, however the program was compiled

/// Each symbol is asked for in the form that a version of CUDA gave it, whatever the driver's:
/// cuCtxGetDevice, for one, takes other parameters since 13.0.
class Loader {
public:
  explicit Loader(GetProcAddress get) : get_(get) {}

  template <typename Entry>
  void find(Entry& entry, const char* name, int version) {
    void* address = nullptr;
    const Result result = get_(name, &address, version, legacy_stream, nullptr);
    if (result != success) address = nullptr;
    short_of_memory_ |= result == out_of_memory;
    entry = reinterpret_cast<Entry>(address);
    complete_ &= address != nullptr;
  }
  Lookup lookup() const {
    return short_of_memory_ ? Lookup::not_now : complete_ ? Lookup::found : Lookup::absent;
  }

private:
  GetProcAddress get_;
  bool complete_ = true, short_of_memory_ = false;
};

Driver table;
DEEPGEN_CONSTINIT DriverSearch<Driver> search;

const char* text_of(Result result) {
  const char* text = nullptr;
  return table.get_error_string(result, &text) == success ? text : nullptr;
}

Lookup load(const Driver*& found) {
  const char* path = secure_getenv("DEEPGEN_CUDA_DRIVER");
  auto lookup = Lookup::absent;
  void* library = open_library(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL, lookup);
  if (!library) return lookup; // else never closed
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!get) return Lookup::absent;
  Loader optional(get), needed(get);
  optional.find(table.function_load, "cuFuncLoad", 12040);
  optional.find(table.library_unload, "cuLibraryUnload", 12000);
  needed.find(table.get_error_string, "cuGetErrorString", 6000);
  needed.find(table.context_device, "cuCtxGetDevice", 2000);
  needed.find(table.device_count, "cuDeviceGetCount", 2000);
  needed.find(table.device_name, "cuDeviceGetName", 2000);
  needed.find(table.device_attribute, "cuDeviceGetAttribute", 2000);
  needed.find(table.library_load, "cuLibraryLoadData", 12000);
  needed.find(table.library_kernel, "cuLibraryGetKernel", 12000);
  needed.find(table.kernel_attribute, "cuKernelGetAttribute", 12000);
  needed.find(table.kernel_set_attribute, "cuKernelSetAttribute", 12000);
  needed.find(table.kernel_function, "cuKernelGetFunction", 12000);
  needed.find(table.launch, "cuLaunchKernelEx", 11060);
  needed.find(table.encode_tiled, "cuTensorMapEncodeTiled", 12000);
  needed.find(table.blocks_that_fit, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050);
  needed.find(table.clusters_that_fit, "cuOccupancyMaxActiveClusters", 11070);
  needed.find(table.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", 10010);
  found = &table;
  return optional.lookup() == Lookup::not_now ? Lookup::not_now : needed.lookup();
}

} // namespace

const Driver* driver(deepgen_status* why_none) {
  auto lookup = Lookup::found;
  const Driver* found = search.get(load, &lookup);
  if (!found && why_none) *why_none = without_driver(lookup);
  return found;
}

deepgen_status failure(Result result) {
  switch (result) {
  case not_initialized: // nobody called cuInit(), so there is no context either
  case no_device:
  case invalid_context:
    return DEEPGEN_ERROR_NO_CONTEXT;
  default:
    keep_driver_error(result, text_of);
    return DEEPGEN_ERROR_DRIVER;
  }
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
