// The entry points of HIP's runtime library that a launch needs: AMD's ROCm 5 to 7, and Hygon's DTK. Nothing
// links HIP or includes its headers. Internal.
//
// Relied on are signatures and numbers that are the same in the headers of ROCm 5.2 to 6.3: those of the
// entry points below, of hipError_t, hipDeviceAttribute_t and hipStreamCaptureMode. Not relied on is the
// layout of hipDeviceProp_t, which ROCm 6 changed, and with it the name of the function that fills it in.
#pragma once

#include "runtime/core/abi.h"

namespace deepgen::amd {
inline namespace DEEPGEN_ABI_NAMESPACE {

using Result = int; ///< hipError_t
enum : Result {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_configuration = 9,
  invalid_device_function = 98,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  invalid_kernel_file = 218,
  shared_object_init_failed = 303,
  not_found = 500,
  out_of_resources = 701,
  not_supported = 801
};

using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = deepgen_stream;

enum DeviceAttribute : int { multiprocessors = 63 };

struct Driver {
  const char* (*get_error_string)(Result);
  Result (*get_device)(int* device); ///< the thread's current one: 0 where it has chosen none
  Result (*device_count)(int*);
  Result (*device_name)(char*, int length, int device);
  Result (*device_attribute)(int*, int attribute, int device);
  Result (*device_properties)(void* properties, int device); ///< of whatever layout
  Result (*module_load)(Module*, const void* code);          ///< for the current device
  Result (*module_unload)(Module);                           ///< may be null
  Result (*module_function)(Function*, Module, const char* name);
  Result (*launch)(Function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                   uint32_t block_y, uint32_t block_z, uint32_t shared, Stream, void** parameters,
                   void** extra);
  Result (*blocks_that_fit)(int*, Function, int block_threads,
                            size_t dynamic_shared); ///< on one compute unit
  Result (*exchange_capture_mode)(int* mode);       ///< may be null
};

/// Where HIP's library is looked for: ROCm's by version, then as its development package and PyTorch's wheels
/// name it; Hygon's; ROCm's where the linker's cache does not know the folder.
inline constexpr const char* library_names[] = {"libamdhip64.so.7",
                                                "libamdhip64.so.6",
                                                "libamdhip64.so.5",
                                                "libamdhip64.so",
                                                "libgalaxyhip.so.5",
                                                "libgalaxyhip.so",
                                                "/opt/rocm/lib/libamdhip64.so"};

/// HIP's library in this process, found once: the one that the program uses, if it does, as streams of
/// one are nothing to another. Null when there is none or an entry point is missing, or when the host could
/// not load it this time: a status for each. DEEPGEN_HIP_DRIVER in the environment names another library, for
/// tests.
const Driver* driver(deepgen_status* why_none = nullptr);
/// What driver() found, for other entry points of it: a handle of dlopen. Null before the first call of
/// driver().
void* library();

/// The status of a failed call, kept for deepgen_last_driver_error() when it is DEEPGEN_ERROR_DRIVER.
deepgen_status failure(Result);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::amd
