// cuBLASLt and hipBLASLt, found by dlopen. Their calls are alike; what differs, numbers above all, is in
// these tables, which the measurement uses too. Internal.
#pragma once

#include "runtime/core/fallback.h"

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

struct LtNumbers {
  // attributes of a multiplication
  int trans_a, trans_b, epilogue, bias_pointer, bias_type, scale_a, scale_b;
  int fast_accumulation; ///< -1: it has none
  // attributes of a layout
  int batch_count, batch_stride;
  // operations
  int plain, transposed;
  // compute types
  int f64, tf32, i32, f32;
};

/// Parts of an epilogue, to be added up; alike in both.
enum LtEpilogue : int { lt_default = 1, lt_relu = 2, lt_bias = 4, lt_gelu = 32 };

struct LtLibrary {
  uint32_t kind; ///< deepgen_library
  LtNumbers number;
  int (*create)(void**);
  int (*desc_create)(void**, int compute, int scale);
  int (*desc_set)(void*, int attribute, const void*, size_t);
  int (*desc_destroy)(void*);
  int (*layout_create)(void**, int type, uint64_t rows, uint64_t columns, int64_t ld);
  int (*layout_set)(void*, int attribute, const void*, size_t);
  int (*layout_destroy)(void*);
  int (*matmul)(void* handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b,
                void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                const void* algorithm, void* workspace, size_t workspace_bytes, deepgen_stream);

  /// Of a result of `matmul`: the library found it out before it enqueued anything.
  bool (*enqueued_nothing)(int result);
  const char* (*lost_text)(int result); ///< of LtOutcome::lost
  /// Whether it has the algorithm for such operands; layouts in its own order. Null: nothing is to be asked.
  bool (*admits)(void* handle, void* desc, void* a, void* b, void* d, const deepgen_vendor_call&);
};

/// Finds the library of this version ("13.1.0") and its handle for the current context, whose device has this
/// ordinal; or says why not. Not thread-safe.
using FindLt = Fallback (*)(const char* version, int ordinal, const LtLibrary*& library, void*& handle);

/// For a FindLt: one handle a library and device, for as long as the process runs.
Fallback lt_handle(const LtLibrary&, int ordinal, void*& handle);
/// "13.1.0", or false.
bool parse_lt_version(const char* text, size_t (&numbers)[3]);

/// cudaDataType and hipDataType of a deepgen_type.
int lt_data_type(uint8_t type);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
