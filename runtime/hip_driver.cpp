#include "runtime/hip_driver.h"

#include "runtime/gpu.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

namespace deepgen::amd::inline DEEPGEN_ABI_NAMESPACE {
namespace {

Driver table;
void* handle = nullptr; // never closed
std::atomic<const Driver*> loaded{nullptr};
std::atomic<uint32_t> looked{0};
pthread_mutex_t driver_mutex = PTHREAD_MUTEX_INITIALIZER;

void* open_library() {
  const char* path = secure_getenv("DEEPGEN_HIP_DRIVER");
  if (path && *path) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  for (int flags : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL})
    for (const char* name : library_names)
      if (void* library = dlopen(name, flags)) return library;
  return nullptr;
}

const Driver* load() {
  handle = open_library();
  if (!handle) return nullptr;
  bool complete = true;
  const auto find = [&](auto& entry, const char* name) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(handle, name));
    complete &= entry != nullptr;
  };
  find(table.exchange_capture_mode, "hipThreadExchangeStreamCaptureMode");
  find(table.device_properties, "hipGetDevicePropertiesR0600"); // since ROCm 6
  find(table.module_unload, "hipModuleUnload");
  complete = true;
  if (!table.device_properties) find(table.device_properties, "hipGetDeviceProperties");
  find(table.get_error_string, "hipGetErrorString");
  find(table.get_device, "hipGetDevice");
  find(table.device_count, "hipGetDeviceCount");
  find(table.device_name, "hipDeviceGetName");
  find(table.device_attribute, "hipDeviceGetAttribute");
  find(table.module_load, "hipModuleLoadData");
  find(table.module_function, "hipModuleGetFunction");
  find(table.launch, "hipModuleLaunchKernel");
  find(table.blocks_that_fit, "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
  return complete ? &table : nullptr;
}

const char* text_of(Result result) { return table.get_error_string(result); }

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

void* library() { return handle; }

deepgen_status failure(Result result) {
  switch (result) {
  case not_initialized: // what calls return where the kernel has no driver for the GPU, or the user no access
                        // to it
  case no_device:
  case invalid_device:
  case invalid_context:
    return DEEPGEN_ERROR_NO_CONTEXT;
  default:
    keep_driver_error(result, text_of);
    return DEEPGEN_ERROR_DRIVER;
  }
}

} // namespace deepgen::amd::inline DEEPGEN_ABI_NAMESPACE
