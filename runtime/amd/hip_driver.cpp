#include "runtime/amd/hip_driver.h"

#include "runtime/gpu/driver_library.h"
#include "runtime/gpu/gpu.h"

#include <cstdlib>
#include <dlfcn.h>
#include <initializer_list>

namespace deepgen::amd {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

Driver table;
void* handle = nullptr; // never closed
DEEPGEN_CONSTINIT DriverSearch<Driver> search;

/// Ends at the first name that the host cannot load now: another one's streams would be nothing to it.
void* find_library(Lookup& lookup) {
  const char* path = secure_getenv("DEEPGEN_HIP_DRIVER");
  if (path && *path) return open_library(path, RTLD_NOW | RTLD_LOCAL, lookup);
  for (int flags : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL})
    for (const char* name : library_names) {
      void* library = open_library(name, flags, lookup);
      if (library || lookup == Lookup::not_now) return library;
    }
  return nullptr;
}

Lookup load(const Driver*& found) {
  auto lookup = Lookup::absent;
  handle = find_library(lookup);
  if (!handle) return lookup;
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
  found = &table;
  return complete ? Lookup::found : Lookup::absent;
}

const char* text_of(Result result) { return table.get_error_string(result); }

} // namespace

const Driver* driver(deepgen_status* why_none) {
  auto lookup = Lookup::found;
  const Driver* found = search.get(load, &lookup);
  if (!found && why_none) *why_none = without_driver(lookup);
  return found;
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

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::amd
