#include "measure/devices/hip_driver.h"

#include "base/files/library.h"
#include "base/text/memory.h"
#include "runtime/amd/hip_driver.h"
#include "runtime/amd/hip_load.h"

#include <cctype>
#include <cstdlib>
#include <dlfcn.h>
#include <iterator>

namespace deepgen::cuda {
namespace {

constexpr int kInvalidValue = 1;

HipEntries hip;

/// The runtime looks for the library without a word of why it does not load. Throws HostFault.
OpenedLibrary find_library() {
  const char* path = std::getenv("DEEPGEN_HIP_DRIVER");
  return path && *path ? open_library({path})
                       : open_library({std::begin(amd::library_names), std::end(amd::library_names)});
}

bool find_entries(void* library) {
  bool complete = true;
#define FIND(name)                                                                                           \
  hip.name = reinterpret_cast<decltype(hip.name)>(dlsym(library, #name)), complete &= hip.name != nullptr
  FIND(hipDeviceGetPCIBusId);
  complete = true;
  FIND(hipInit), FIND(hipDriverGetVersion), FIND(hipGetErrorName), FIND(hipGetErrorString);
  FIND(hipGetDeviceCount), FIND(hipDeviceGetUuid), FIND(hipDeviceGetName), FIND(hipDeviceGetAttribute);
  FIND(hipSetDevice), FIND(hipMemGetInfo), FIND(hipMalloc), FIND(hipFree), FIND(hipMemcpyHtoD),
      FIND(hipMemcpyDtoH);
  FIND(hipMemsetD32Async), FIND(hipModuleLoadData), FIND(hipModuleUnload), FIND(hipModuleGetFunction);
  FIND(hipModuleLaunchKernel), FIND(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);
  FIND(hipStreamCreateWithFlags), FIND(hipStreamSynchronize), FIND(hipStreamBeginCapture),
      FIND(hipStreamEndCapture);
  FIND(hipGraphInstantiate), FIND(hipGraphLaunch), FIND(hipGraphExecDestroy), FIND(hipGraphDestroy);
  FIND(hipEventCreate), FIND(hipEventRecord), FIND(hipEventElapsedTime);
#undef FIND
  return complete;
}

void* pointer(Address a) { return reinterpret_cast<void*>(uintptr_t(a)); }

int launch(const LaunchConfig* c, Function f, void** parameters, void** extra) {
  if (c->attribute_count) return kInvalidValue; // clusters and dependent launches are NVIDIA's
  return hip.hipModuleLaunchKernel(f, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
                                   c->block[2], c->shared, c->stream, parameters, extra);
}

/// The calls that have the same form.
void share(Driver& d) {
  d.cuInit = hip.hipInit, d.cuDriverGetVersion = hip.hipDriverGetVersion;
  d.cuDeviceGetCount = hip.hipGetDeviceCount, d.cuDeviceGetName = hip.hipDeviceGetName;
  d.cuDeviceGetUuid = hip.hipDeviceGetUuid, d.cuMemGetInfo = hip.hipMemGetInfo;
  d.cuModuleUnload = hip.hipModuleUnload, d.cuModuleGetFunction = hip.hipModuleGetFunction;
  d.cuOccupancyMaxActiveBlocksPerMultiprocessor = hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor;
  d.cuStreamCreate = hip.hipStreamCreateWithFlags, d.cuStreamSynchronize = hip.hipStreamSynchronize;
  d.cuStreamBeginCapture = hip.hipStreamBeginCapture, d.cuStreamEndCapture = hip.hipStreamEndCapture;
  d.cuGraphLaunch = hip.hipGraphLaunch, d.cuGraphExecDestroy = hip.hipGraphExecDestroy;
  d.cuGraphDestroy = hip.hipGraphDestroy;
  d.cuEventRecord = hip.hipEventRecord, d.cuEventElapsedTime = hip.hipEventElapsedTime;
}

/// The calls that have another one.
void adapt(Driver& d) {
  d.cuGetErrorName = [](int code, const char** text) { return *text = hip.hipGetErrorName(code), 0; };
  d.cuGetErrorString = [](int code, const char** text) { return *text = hip.hipGetErrorString(code), 0; };
  d.cuDeviceGet = [](int* device, int ordinal) { return *device = ordinal, 0; };
  d.cuDeviceGetAttribute = [](int* value, int attribute, int device) {
    return hip.hipDeviceGetAttribute(value, hip_attribute(Attribute(attribute)), device);
  };
  d.cuDevicePrimaryCtxRetain = [](void** context, int device) {
    return *context = nullptr, hip.hipSetDevice(device);
  };
  d.cuCtxSetCurrent = [](void*) { return 0; };
  d.cuMemAlloc = [](Address* address, size_t bytes) {
    void* memory = nullptr;
    const int code = hip.hipMalloc(&memory, bytes);
    *address = reinterpret_cast<uintptr_t>(memory);
    return code;
  };
  d.cuMemFree = [](Address address) { return hip.hipFree(pointer(address)); };
  d.cuMemcpyHtoD = [](Address to, const void* from, size_t bytes) {
    return hip.hipMemcpyHtoD(pointer(to), const_cast<void*>(from), bytes);
  };
  d.cuMemcpyDtoH = [](void* to, Address from, size_t bytes) {
    return hip.hipMemcpyDtoH(to, pointer(from), bytes);
  };
  d.cuMemsetD32Async = [](Address to, unsigned word, size_t count, Stream stream) {
    return hip.hipMemsetD32Async(pointer(to), int(word), count, stream);
  };
  d.cuModuleLoadDataEx = [](void** module, const void* image, unsigned, int*, void**) {
    return hip.hipModuleLoadData(module, image);
  };
  d.cuFuncSetAttribute = [](Function, int, int) { return 0; }; // LDS needs no leave
  d.cuLaunchKernelEx = launch;
  d.cuGraphInstantiate = [](void** executable, void* graph, unsigned long long) {
    return hip.hipGraphInstantiate(executable, graph, nullptr, nullptr, 0);
  };
  d.cuGraphUpload = [](void*, Stream) { return 0; }; // ROCm 5 has none; the first launch does it
  d.cuEventCreate = [](Event* event, unsigned) { return hip.hipEventCreate(event); };
}

} // namespace

NoDriver load_hip(Driver& d) {
  const std::string none = "no ROCm of version 5.2 or later (libamdhip64.so)";
  const OpenedLibrary library = find_library();
  if (!library) return {library.absence(none), !library.why.empty()};
  deepgen_status why = DEEPGEN_OK;
  const amd::Driver* found = amd::driver(&why);
  if (why == DEEPGEN_ERROR_DRIVER) throw no_memory("HIP's library cannot be loaded now", "", 0);
  if (!found || !find_entries(amd::library())) return {none};
  d = {};
  share(d), adapt(d);
  return {};
}

std::string hip_target(int ordinal) {
  amd::Device device;
  check(amd::describe(*amd::driver(), ordinal, device), "asking for the arch of the device");
  return device.target;
}

std::string hip_uuid(int ordinal) {
  unsigned char bytes[17] = {};
  check(hip.hipDeviceGetUuid(bytes, ordinal), "asking for the UUID of the device");
  std::string text = reinterpret_cast<const char*>(bytes);
  bool good = text.size() == 16;
  for (unsigned char c : text) good &= std::isxdigit(c) != 0;
  if (good) return "GPU-" + text;
  char place[32] = "";
  if (hip.hipDeviceGetPCIBusId)
    check(hip.hipDeviceGetPCIBusId(place, sizeof place, ordinal), "asking for the device's bus");
  return "PCI-" + std::string(place);
}

} // namespace deepgen::cuda
