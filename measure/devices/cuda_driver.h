// The driver of GPUs, loaded with dlopen: the few entry points that measuring needs, and owners for what they
// create. Only worker processes use it: a process that has initialised the driver must not fork.
//
// The calls are CUDA's; for AMD's devices hip_driver.cpp fills the same table with HIP's, which are alike.
#pragma once

#include "measure/process/device_error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace deepgen::cuda {

using Address = uint64_t; ///< of device memory
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Function = struct FunctionTag*;

/// A failed driver call. `sticky`: the context is lost, and with it the process for CUDA.
class DriverError : public DeviceError {
public:
  DriverError(int code, const std::string& text, const std::string& call);
  int code;
  bool others = false; ///< the device's memory is short because others have it
  bool sticky() const;
  void check_host() const override; ///< throws when `others`
};

struct LaunchAttribute { ///< CUlaunchAttribute
  uint32_t id = 0, padding = 0;
  uint32_t value[16] = {};
};
struct LaunchConfig { ///< CUlaunchConfig
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t shared = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  uint32_t attribute_count = 0;
};
struct alignas(128) TensorMapBits { ///< CUtensorMap
  uint64_t words[16] = {};
};

struct GraphEdge { ///< CUgraphEdgeData
  unsigned char from_port = 0, to_port = 0, type = 0, reserved[5] = {};
};

/// CUdevice_attribute
enum class Attribute {
  clock_khz = 13,
  multiprocessors = 16,
  memory_clock_khz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  capability_major = 75,
  capability_minor = 76,
  shared_per_multiprocessor = 81,
  shared_per_block = 97
};

/// Entry points by their names in libcuda.so.1; those that only some drivers have may be null.
struct Driver {
  int (*cuInit)(unsigned);
  int (*cuDriverGetVersion)(int*);
  int (*cuGetErrorName)(int, const char**);
  int (*cuGetErrorString)(int, const char**);
  int (*cuDeviceGetCount)(int*);
  int (*cuDeviceGet)(int*, int);
  int (*cuDeviceGetName)(char*, int, int);
  int (*cuDeviceGetUuid)(unsigned char*, int);
  int (*cuDeviceGetAttribute)(int*, int, int);
  int (*cuDevicePrimaryCtxRetain)(void**, int);
  int (*cuCtxSetCurrent)(void*);
  int (*cuMemGetInfo)(size_t*, size_t*);
  int (*cuMemAlloc)(Address*, size_t);
  int (*cuMemFree)(Address);
  int (*cuMemcpyHtoD)(Address, const void*, size_t);
  int (*cuMemcpyDtoH)(void*, Address, size_t);
  int (*cuMemsetD32Async)(Address, unsigned, size_t, Stream);
  int (*cuModuleLoadDataEx)(void**, const void*, unsigned, int*, void**);
  int (*cuModuleUnload)(void*);
  int (*cuModuleGetFunction)(Function*, void*, const char*);
  int (*cuFuncSetAttribute)(Function, int, int);
  int (*cuLaunchKernelEx)(const LaunchConfig*, Function, void**, void**);
  int (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int*, Function, int, size_t);
  int (*cuOccupancyMaxActiveClusters)(int*, Function, const LaunchConfig*);
  int (*cuTensorMapEncodeTiled)(TensorMapBits*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                                const uint32_t*, const uint32_t*, int, int, int, int);
  int (*cuStreamCreate)(Stream*, unsigned);
  int (*cuStreamSynchronize)(Stream);
  int (*cuStreamBeginCapture)(Stream, int);
  int (*cuStreamEndCapture)(Stream, void**);
  int (*cuGraphGetEdges)(void*, void**, void**, GraphEdge*, size_t*);
  int (*cuGraphRemoveDependencies)(void*, void* const*, void* const*, const GraphEdge*, size_t);
  int (*cuGraphAddDependencies)(void*, void* const*, void* const*, const GraphEdge*, size_t);
  int (*cuGraphInstantiate)(void**, void*, unsigned long long);
  int (*cuGraphUpload)(void*, Stream);
  int (*cuGraphLaunch)(void*, Stream);
  int (*cuGraphExecDestroy)(void*);
  int (*cuGraphDestroy)(void*);
  int (*cuEventCreate)(Event*, unsigned);
  int (*cuEventRecord)(Event, Stream);
  int (*cuEventElapsedTime)(float*, Event, Event);
};

/// Whose devices this process, and those that it starts from now on, measure on: CUDA's until use() says
/// otherwise.
enum class Platform { cuda, hip };
void use(Platform);
Platform platform();
Platform platform_of(const std::string& arch); ///< HIP for "gfx942"

/// The platform's loaded driver; null when there is none or it lacks an entry point (NVIDIA's before 12.0,
/// ROCm before 5.2).
const Driver* driver();
/// Where driver() is null, why; `broken`: its library is there and does not load.
struct NoDriver {
  std::string why;
  bool broken = false;
};
const NoDriver& why_no_driver();
/// Throws DriverError when `code` is not success. `call` says what failed, in words.
void check(int code, const char* call);

/// The device that CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES shows under this number, made current to this
/// thread.
class Context {
public:
  explicit Context(int ordinal);
  int attribute(Attribute) const;
  const std::string& target() const { return target_; } ///< of an AMD device: "gfx942:sramecc+:xnack-"
  int multiprocessors() const { return multiprocessors_; }
  Stream stream() const { return stream_; }
  void synchronize() const; ///< throws what the kernels since the last one did wrong

private:
  int device_ = 0, multiprocessors_ = 0;
  std::string target_;
  Stream stream_ = nullptr;
};

/// Device memory, 256-byte aligned.
class Memory {
public:
  Memory() = default;
  explicit Memory(size_t bytes);
  ~Memory();
  Memory(Memory&& other) noexcept : address_(std::exchange(other.address_, 0)), bytes_(other.bytes_) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(address_, other.address_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  Address address() const { return address_; }
  size_t bytes() const { return bytes_; }

private:
  Address address_ = 0;
  size_t bytes_ = 0;
};

/// Loaded code: a cubin, or PTX (zero-terminated) that the driver compiles. A failure quotes the driver's
/// log.
class Module {
public:
  explicit Module(const std::string& image);
  ~Module();
  Module(Module&& other) noexcept : module_(std::exchange(other.module_, nullptr)) {}
  Function function(const std::string& entry) const;

private:
  void* module_ = nullptr;
};

/// What was enqueued between begin and the constructor's end, replayable.
class Graph {
public:
  /// `serial`: nothing starts before what it depends on has ended, whoever launched it and however.
  template <typename Enqueue>
  Graph(Stream stream, Enqueue enqueue, bool serial = false) {
    begin(stream);
    try {
      enqueue();
    } catch (...) {
      abandon(stream);
      throw;
    }
    end(stream, serial);
  }
  ~Graph();
  Graph(Graph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
  void launch(Stream) const;

private:
  static void begin(Stream);
  static void abandon(Stream);
  void end(Stream, bool serial);
  void* executable_ = nullptr;
};

} // namespace deepgen::cuda
