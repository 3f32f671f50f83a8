// What is declared of HIP without its headers, held against them. Compiled only where they are installed
// (Debian: libamdhip64-dev); written with those of ROCm 5.2.
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_PLATFORM_HCC__ 1
#include "measure/devices/hip_driver.h"
#include "runtime/amd/hip_driver.h"

#include <hip/hip_runtime_api.h>

#include <type_traits>

namespace {

namespace amd = deepgen::amd;
using deepgen::cuda::Attribute, deepgen::cuda::HipEntries;

static_assert(amd::success == int(hipSuccess) && amd::invalid_value == int(hipErrorInvalidValue));
static_assert(amd::out_of_memory == int(hipErrorOutOfMemory) &&
              amd::not_initialized == int(hipErrorNotInitialized));
static_assert(amd::invalid_configuration == int(hipErrorInvalidConfiguration));
static_assert(amd::invalid_device_function == int(hipErrorInvalidDeviceFunction));
static_assert(amd::no_device == int(hipErrorNoDevice) && amd::invalid_device == int(hipErrorInvalidDevice));
static_assert(amd::invalid_image == int(hipErrorInvalidImage) &&
              amd::invalid_context == int(hipErrorInvalidContext));
static_assert(amd::no_binary_for_gpu == int(hipErrorNoBinaryForGpu));
static_assert(amd::invalid_kernel_file == int(hipErrorInvalidKernelFile));
static_assert(amd::shared_object_init_failed == int(hipErrorSharedObjectInitFailed));
static_assert(amd::not_found == int(hipErrorNotFound) && amd::not_supported == int(hipErrorNotSupported));
static_assert(amd::out_of_resources == int(hipErrorLaunchOutOfResources));
static_assert(int(amd::multiprocessors) == int(hipDeviceAttributeMultiprocessorCount));
static_assert(int(hipStreamCaptureModeThreadLocal) == 1 && int(hipStreamCaptureModeRelaxed) == 2);
static_assert(hipStreamNonBlocking == 1);
// find_target() of runtime/amd/hip_load.cpp.
static_assert(offsetof(hipDeviceProp_t, name) == 0 && sizeof(hipDeviceProp_t::name) == 256);
static_assert(offsetof(hipDeviceProp_t, gcnArchName) >= 256 && sizeof(hipDeviceProp_t) <= 8192);
static_assert(sizeof(hipUUID) == 16);

static_assert(deepgen::cuda::hip_attribute(Attribute::clock_khz) == int(hipDeviceAttributeClockRate));
static_assert(deepgen::cuda::hip_attribute(Attribute::multiprocessors) ==
              int(hipDeviceAttributeMultiprocessorCount));
static_assert(deepgen::cuda::hip_attribute(Attribute::memory_clock_khz) ==
              int(hipDeviceAttributeMemoryClockRate));
static_assert(deepgen::cuda::hip_attribute(Attribute::memory_bus_bits) ==
              int(hipDeviceAttributeMemoryBusWidth));
static_assert(deepgen::cuda::hip_attribute(Attribute::l2_bytes) == int(hipDeviceAttributeL2CacheSize));
static_assert(deepgen::cuda::hip_attribute(Attribute::shared_per_block) ==
              int(hipDeviceAttributeMaxSharedMemoryPerBlock));
static_assert(deepgen::cuda::hip_attribute(Attribute::shared_per_multiprocessor) ==
              int(hipDeviceAttributeMaxSharedMemoryPerMultiprocessor));

/// As many parameters, each of the same size and as much of a pointer; the result likewise.
template <typename R, typename... A, typename S, typename... B>
constexpr bool same_form(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return sizeof(R) == sizeof(S) && std::is_pointer_v<R> == std::is_pointer_v<S> &&
           ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
}
#define SAME(member, entry) static_assert(same_form(decltype(amd::Driver::member){}, decltype(&::entry){}))
SAME(get_error_string, hipGetErrorString);
SAME(get_device, hipGetDevice);
SAME(device_count, hipGetDeviceCount);
SAME(device_name, hipDeviceGetName);
SAME(device_attribute, hipDeviceGetAttribute);
SAME(device_properties, hipGetDeviceProperties);
SAME(module_load, hipModuleLoadData);
SAME(module_unload, hipModuleUnload);
SAME(module_function, hipModuleGetFunction);
SAME(launch, hipModuleLaunchKernel);
SAME(exchange_capture_mode, hipThreadExchangeStreamCaptureMode);
static_assert(!same_form(decltype(amd::Driver::module_load){}, decltype(&::hipModuleGetFunction){}),
              "the check can fail");

#define SAME_ENTRY(entry) static_assert(same_form(decltype(HipEntries::entry){}, decltype(&::entry){}))
SAME_ENTRY(hipInit);
SAME_ENTRY(hipDriverGetVersion);
SAME_ENTRY(hipGetErrorName);
SAME_ENTRY(hipDeviceGetUuid);
SAME_ENTRY(hipDeviceGetPCIBusId);
SAME_ENTRY(hipSetDevice);
SAME_ENTRY(hipMemGetInfo);
SAME_ENTRY(hipFree);
SAME_ENTRY(hipMemcpyHtoD);
SAME_ENTRY(hipMemcpyDtoH);
SAME_ENTRY(hipMemsetD32Async);
SAME_ENTRY(hipModuleUnload);
SAME_ENTRY(hipStreamCreateWithFlags);
SAME_ENTRY(hipStreamSynchronize);
SAME_ENTRY(hipStreamBeginCapture);
SAME_ENTRY(hipStreamEndCapture);
SAME_ENTRY(hipGraphInstantiate);
SAME_ENTRY(hipGraphLaunch);
SAME_ENTRY(hipGraphExecDestroy);
SAME_ENTRY(hipGraphDestroy);
SAME_ENTRY(hipEventCreate);
SAME_ENTRY(hipEventRecord);
SAME_ENTRY(hipEventElapsedTime);

/// Of those with overloads for C++, the one of C.
template <typename... A>
constexpr bool has_form(int (*)(A...), hipError_t (*entry)(A...)) {
  return entry;
}
static_assert(has_form<void**, size_t>(decltype(HipEntries::hipMalloc){}, &::hipMalloc));

} // namespace
