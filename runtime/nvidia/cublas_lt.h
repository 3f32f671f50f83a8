// cuBLASLt, found by dlopen: its functions, and those of its numbers that are used here and by the
// measurement. Internal.
#pragma once

#include "runtime/core/fallback.h"
#include "runtime/nvidia/cuda_driver.h"

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// cublasLt.h, cublas_api.h and library_types.h of CUDA 12 and 13.
enum LtNumber : int {
  // attributes of a multiplication
  lt_trans_a = 3,
  lt_trans_b = 4,
  lt_epilogue = 7,
  lt_bias_pointer = 8,
  lt_scale_a = 17,
  lt_scale_b = 18,
  lt_fast_accumulation = 25,
  lt_bias_type = 26,
  // attributes of a layout
  lt_batch_count = 5,
  lt_batch_stride = 6,
  // compute types
  lt_compute_f32 = 68,
  lt_compute_f64 = 70,
  lt_compute_i32 = 72,
  lt_compute_tf32 = 77,
  // parts of an epilogue, to be added up
  lt_default = 1,
  lt_relu = 2,
  lt_bias = 4,
  lt_gelu = 32
};
enum LtResult : int { // cublasStatus_t
  lt_not_initialized = 1,
  lt_out_of_memory = 3,
  lt_invalid_value = 7,
  lt_arch_mismatch = 8,
  lt_not_supported = 15
};

struct LtLibrary {
  int (*create)(void**);
  int (*desc_create)(void**, int compute, int scale);
  int (*desc_set)(void*, int attribute, const void*, size_t);
  int (*desc_destroy)(void*);
  int (*layout_create)(void**, int type, uint64_t rows, uint64_t columns, int64_t ld);
  int (*layout_set)(void*, int attribute, const void*, size_t);
  int (*layout_destroy)(void*);
  int (*matmul)(void* handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b,
                void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                const void* algorithm, void* workspace, size_t workspace_bytes, Stream);
};

/// The library of this version ("13.1.0") and its handle for the current context, whose device has this
/// ordinal; or why not. DEEPGEN_CUBLASLT in the environment names another file, for tests. Not thread-safe.
Fallback find_lt(const char* version, int ordinal, const LtLibrary*& library, void*& handle);

/// cudaDataType of a deepgen_type.
int lt_data_type(uint8_t type);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
