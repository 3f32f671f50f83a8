#include "runtime/cuda_driver.h"

#include "runtime/gpu.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

namespace deepgen::nvidia::inline DEEPGEN_ABI_NAMESPACE {
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
    if (get_(name, &address, version, legacy_stream, nullptr) != success) address = nullptr;
    entry = reinterpret_cast<Entry>(address);
    complete_ &= address != nullptr;
  }
  bool complete() const { return complete_; }

private:
  GetProcAddress get_;
  bool complete_ = true;
};

Driver table;
std::atomic<const Driver*> loaded{nullptr};
std::atomic<uint32_t> looked{0};
pthread_mutex_t driver_mutex = PTHREAD_MUTEX_INITIALIZER;

const char* text_of(Result result) {
  const char* text = nullptr;
  return table.get_error_string(result, &text) == success ? text : nullptr;
}

const Driver* load() {
  const char* path = secure_getenv("DEEPGEN_CUDA_DRIVER");
  void* library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL); // never closed
  if (!library) return nullptr;
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!get) return nullptr;
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
  return needed.complete() ? &table : nullptr;
}

} // namespace

const Driver* driver() {
  if (looked.load(std::memory_order_acquire)) return loaded.load(std::memory_order_relaxed);
  pthread_mutex_lock(&driver_mutex);
  if (!looked.load(std::memory_order_relaxed)) {
    loaded.store(load(), std::memory_order_relaxed);
    looked.store(1, std::memory_order_release);
  }
  pthread_mutex_unlock(&driver_mutex);
  return loaded.load(std::memory_order_relaxed);
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

} // namespace deepgen::nvidia::inline DEEPGEN_ABI_NAMESPACE
