// runtime/nvidia/cuda_driver.h declares what it needs of the CUDA driver by itself: here it is held against
// the toolkit's headers. Compiled only where there is a toolkit.
#include "runtime/nvidia/cuda_driver.h"

#include <cstddef>
#include <cudaTypedefs.h>
#include <type_traits>

namespace {

using namespace deepgen::nvidia;

static_assert(success == Result(CUDA_SUCCESS) && invalid_value == Result(CUDA_ERROR_INVALID_VALUE));
static_assert(out_of_memory == Result(CUDA_ERROR_OUT_OF_MEMORY) &&
              not_initialized == Result(CUDA_ERROR_NOT_INITIALIZED));
static_assert(no_device == Result(CUDA_ERROR_NO_DEVICE) && invalid_image == Result(CUDA_ERROR_INVALID_IMAGE));
static_assert(invalid_context == Result(CUDA_ERROR_INVALID_CONTEXT) &&
              no_binary_for_gpu == Result(CUDA_ERROR_NO_BINARY_FOR_GPU));
static_assert(invalid_ptx == Result(CUDA_ERROR_INVALID_PTX) &&
              jit_compiler_not_found == Result(CUDA_ERROR_JIT_COMPILER_NOT_FOUND));
static_assert(unsupported_ptx_version == Result(CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
static_assert(jit_compilation_disabled == Result(CUDA_ERROR_JIT_COMPILATION_DISABLED));
static_assert(invalid_source == Result(CUDA_ERROR_INVALID_SOURCE) &&
              not_found == Result(CUDA_ERROR_NOT_FOUND));
static_assert(out_of_resources == Result(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES) &&
              not_supported == Result(CUDA_ERROR_NOT_SUPPORTED));

static_assert(int(multiprocessors) == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(int(capability_major) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(int(capability_minor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(int(max_dynamic_shared) == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(int(non_portable_cluster_size) == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(int(cluster_dimension) == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(int(programmatic_stream_serialization) ==
              CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(int(capture_mode_relaxed) == CU_STREAM_CAPTURE_MODE_RELAXED);

static_assert(int(TensorType::u8) == CU_TENSOR_MAP_DATA_TYPE_UINT8);
static_assert(int(TensorType::i32) == CU_TENSOR_MAP_DATA_TYPE_INT32);
static_assert(int(TensorType::f16) == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(int(TensorType::f32) == CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
static_assert(int(TensorType::f64) == CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
static_assert(int(TensorType::bf16) == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(int(TensorType::tf32) == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
// As runtime/nvidia/cuda_tensor_map.cpp numbers them.
static_assert(CU_TENSOR_MAP_INTERLEAVE_NONE == 0 && CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE == 0);
static_assert(CU_TENSOR_MAP_SWIZZLE_NONE == 0 && CU_TENSOR_MAP_SWIZZLE_32B == 1);
static_assert(CU_TENSOR_MAP_SWIZZLE_64B == 2 && CU_TENSOR_MAP_SWIZZLE_128B == 3);
static_assert(CU_TENSOR_MAP_L2_PROMOTION_NONE == 0 && CU_TENSOR_MAP_L2_PROMOTION_L2_64B == 1);
static_assert(CU_TENSOR_MAP_L2_PROMOTION_L2_128B == 2 && CU_TENSOR_MAP_L2_PROMOTION_L2_256B == 3);

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, id) == offsetof(CUlaunchAttribute, id));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(offsetof(CUlaunchAttributeValue, clusterDim.x) == 0 &&
              offsetof(CUlaunchAttributeValue, clusterDim.y) == 4);
static_assert(offsetof(CUlaunchAttributeValue, programmaticStreamSerializationAllowed) == 0);
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, grid) == offsetof(CUlaunchConfig, gridDimX));
static_assert(offsetof(LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfig, shared) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) && alignof(TensorMap) >= alignof(CUtensorMap));

/// As many parameters, each of the same size and as much of a pointer.
template <typename... A, typename... B>
constexpr bool same_form(Result (*)(A...), CUresult (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
}
#define SAME_FORM(member, entry) static_assert(same_form(decltype(Driver::member){}, PFN_##entry{}))
SAME_FORM(get_error_string, cuGetErrorString_v6000);
SAME_FORM(context_device, cuCtxGetDevice_v2000);
SAME_FORM(device_count, cuDeviceGetCount_v2000);
SAME_FORM(device_name, cuDeviceGetName_v2000);
SAME_FORM(device_attribute, cuDeviceGetAttribute_v2000);
SAME_FORM(library_load, cuLibraryLoadData_v12000);
SAME_FORM(library_unload, cuLibraryUnload_v12000);
SAME_FORM(library_kernel, cuLibraryGetKernel_v12000);
SAME_FORM(kernel_attribute, cuKernelGetAttribute_v12000);
SAME_FORM(kernel_set_attribute, cuKernelSetAttribute_v12000);
SAME_FORM(kernel_function, cuKernelGetFunction_v12000);
SAME_FORM(function_load, cuFuncLoad_v12040);
SAME_FORM(launch, cuLaunchKernelEx_v11060);
SAME_FORM(encode_tiled, cuTensorMapEncodeTiled_v12000);
SAME_FORM(blocks_that_fit, cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050);
SAME_FORM(clusters_that_fit, cuOccupancyMaxActiveClusters_v11070);
SAME_FORM(exchange_capture_mode, cuThreadExchangeStreamCaptureMode_v10010);
#if CUDA_VERSION >= 13000
static_assert(!same_form(decltype(Driver::context_device){}, PFN_cuCtxGetDevice_v13000{}),
              "the check can fail");
#endif

} // namespace
