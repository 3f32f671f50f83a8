// The entry points of the CUDA driver that a launch needs, and the few types that they take: nothing links
// CUDA or includes its headers. tests/unit/runtime/cuda_abi_test.cpp compares these declarations with the
// toolkit's. Internal.
#pragma once

#include "runtime/core/abi.h"

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {

using Result = int; ///< CUresult
enum : Result {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  invalid_ptx = 218,
  jit_compiler_not_found = 221,
  unsupported_ptx_version = 222,
  jit_compilation_disabled = 223,
  invalid_source = 300,
  not_found = 500,
  out_of_resources = 701,
  not_supported = 801
};

using Library = struct LibraryTag*;
using Kernel = struct KernelTag*;
using Function = struct FunctionTag*; ///< a Kernel serves as one where a launch wants it
using Stream = deepgen_stream;

enum DeviceAttribute : int { multiprocessors = 16, capability_major = 75, capability_minor = 76 };
enum FunctionAttribute : int { max_dynamic_shared = 8, non_portable_cluster_size = 14 };
enum LaunchAttributeId : uint32_t { cluster_dimension = 4, programmatic_stream_serialization = 6 };
enum : int { capture_mode_relaxed = 2 };

struct LaunchAttribute { ///< CUlaunchAttribute
  uint32_t id, padding;
  uint32_t value[16]; ///< cluster dimension: x, y, z; serialization: 1
};
struct LaunchConfig { ///< CUlaunchConfig
  uint32_t grid[3], block[3];
  uint32_t shared;
  Stream stream;
  LaunchAttribute* attributes;
  uint32_t attribute_count;
};
struct alignas(128) TensorMap { ///< CUtensorMap
  uint64_t words[16];
};
enum class TensorType : int { // CUtensorMapDataType
  u8 = 0,
  i32 = 3,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  bf16 = 9,
  tf32 = 11
};

struct Driver {
  Result (*get_error_string)(Result, const char**);
  Result (*context_device)(int* device);
  Result (*device_count)(int*);
  Result (*device_name)(char*, int length, int device);
  Result (*device_attribute)(int*, int attribute, int device);
  Result (*library_load)(Library*, const void* code, int* jit_options, void** jit_values, unsigned jit_count,
                         int* library_options, void** library_values, unsigned library_count);
  Result (*library_unload)(Library); ///< may be null
  Result (*library_kernel)(Kernel*, Library, const char* name);
  Result (*kernel_attribute)(int*, int attribute, Kernel, int device);
  Result (*kernel_set_attribute)(int attribute, int value, Kernel, int device);
  Result (*kernel_function)(Function*, Kernel);
  Result (*function_load)(Function); ///< null before CUDA 12.4
  Result (*launch)(const LaunchConfig*, Function, void** parameters, void** extra);
  Result (*encode_tiled)(TensorMap*, int type, uint32_t rank, void* address, const uint64_t* sizes,
                         const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
                         int interleave, int swizzle, int promotion, int fill);
  Result (*blocks_that_fit)(int*, Function, int block_threads,
                            size_t dynamic_shared);                 ///< on one multiprocessor
  Result (*clusters_that_fit)(int*, Function, const LaunchConfig*); ///< on the device
  Result (*exchange_capture_mode)(int* mode);
};

/// The driver of this process, found once; null when there is none or it is too old, or when the host could
/// not load it this time: a status for each. DEEPGEN_CUDA_DRIVER in the environment names another library,
/// for tests.
const Driver* driver(deepgen_status* why_none = nullptr);

/// The status of a failed driver call, kept for deepgen_last_driver_error() when it is DEEPGEN_ERROR_DRIVER.
deepgen_status failure(Result);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
