// HIP's library behind the table of driver calls: what verifies and times needs no other code for AMD's
// devices.
#pragma once

#include "measure/devices/cuda_driver.h"

namespace deepgen::cuda {

/// Entry points by their names in libamdhip64.so; the signatures are those of ROCm 5.2 to 6.3.
struct HipEntries {
  int (*hipInit)(unsigned);
  int (*hipDriverGetVersion)(int*);
  const char* (*hipGetErrorName)(int);
  const char* (*hipGetErrorString)(int);
  int (*hipGetDeviceCount)(int*);
  int (*hipDeviceGetUuid)(unsigned char*, int);
  int (*hipDeviceGetPCIBusId)(char*, int, int); ///< may be null
  int (*hipDeviceGetName)(char*, int, int);
  int (*hipDeviceGetAttribute)(int*, int, int);
  int (*hipSetDevice)(int);
  int (*hipMemGetInfo)(size_t*, size_t*);
  int (*hipMalloc)(void**, size_t);
  int (*hipFree)(void*);
  int (*hipMemcpyHtoD)(void*, void*, size_t);
  int (*hipMemcpyDtoH)(void*, void*, size_t);
  int (*hipMemsetD32Async)(void*, int, size_t, Stream);
  int (*hipModuleLoadData)(void**, const void*);
  int (*hipModuleUnload)(void*);
  int (*hipModuleGetFunction)(Function*, void*, const char*);
  int (*hipModuleLaunchKernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               Stream, void**, void**);
  int (*hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)(int*, Function, int, size_t);
  int (*hipStreamCreateWithFlags)(Stream*, unsigned);
  int (*hipStreamSynchronize)(Stream);
  int (*hipStreamBeginCapture)(Stream, int);
  int (*hipStreamEndCapture)(Stream, void**);
  int (*hipGraphInstantiate)(void**, void*, void**, char*, size_t);
  int (*hipGraphLaunch)(void*, Stream);
  int (*hipGraphExecDestroy)(void*);
  int (*hipGraphDestroy)(void*);
  int (*hipEventCreate)(Event*);
  int (*hipEventRecord)(Event, Stream);
  int (*hipEventElapsedTime)(float*, Event, Event);
};

/// hipDeviceAttribute_t; -1: HIP has none.
constexpr int hip_attribute(Attribute a) {
  switch (a) {
  case Attribute::clock_khz:
    return 5;
  case Attribute::multiprocessors:
    return 63;
  case Attribute::memory_clock_khz:
    return 60;
  case Attribute::memory_bus_bits:
    return 59;
  case Attribute::l2_bytes:
    return 19;
  case Attribute::shared_per_multiprocessor:
    return 10002;
  case Attribute::shared_per_block:
    return 74;
  default:
    return -1;
  }
}

/// Fills the table with calls of HIP in the form of CUDA's, unless there is no ROCm, or it lacks an entry
/// point.
NoDriver load_hip(Driver&);

/// Of a device by its number: "gfx942:sramecc+:xnack-".
std::string hip_target(int ordinal);
/// "GPU-8a3b62f1d9a2f3c4" as rocminfo prints it; a board without one has its place on the bus,
/// "PCI-0000:03:00.0".
std::string hip_uuid(int ordinal);

} // namespace deepgen::cuda
