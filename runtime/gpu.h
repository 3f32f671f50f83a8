// The vendors of GPUs as the entry points of the C interface see them, and what their launches have in
// common. Internal.
#pragma once

#include "runtime/arguments.h"

namespace deepgen::inline DEEPGEN_ABI_NAMESPACE {

/// What the entry points ask of a vendor's part. Each works on the device that is current on the calling
/// thread.
struct GpuVendor {
  /// DEEPGEN_OK, DEEPGEN_ERROR_NO_DRIVER, DEEPGEN_ERROR_DRIVER (it could not be loaded this time) or
  /// DEEPGEN_ERROR_NO_CONTEXT (which also means: no device).
  deepgen_status (*current)();
  deepgen_status (*launch)(const deepgen_function&, const deepgen_gemm_args&, deepgen_stream);
  deepgen_status (*prepare)(const deepgen_function&);
  deepgen_status (*describe)(const deepgen_function&, const char*& config, size_t& workspace);
  /// Unloads the function's code and frees its choices.
  void (*forget)(const deepgen_function&);
};
} // namespace deepgen::inline DEEPGEN_ABI_NAMESPACE

namespace deepgen::nvidia::inline DEEPGEN_ABI_NAMESPACE {
extern const GpuVendor vendor; ///< archs "sm_..."
}
namespace deepgen::amd::inline DEEPGEN_ABI_NAMESPACE {
extern const GpuVendor vendor; ///< archs "gfx..."
}

namespace deepgen::inline DEEPGEN_ABI_NAMESPACE {

/// For deepgen_last_driver_error() on this thread. `text_of` may return null.
void keep_driver_error(int code, const char* (*text_of)(int));

/// One call of a function on a GPU.
struct GpuCall {
  GpuCall(const deepgen_function& f, const deepgen_gemm_args& a, deepgen_stream s)
      : function(f), args(a), stream(s) {} // leaves `values` to check_arguments()
  const deepgen_function& function;
  const deepgen_gemm_args& args;
  deepgen_stream stream;
  ArgumentValues values;
};

/// Every address bit that is set in some base, leading dimension or stride of an operand, in bytes.
struct AddressBits {
  uint64_t a, b, d;
  uint64_t pitch; ///< bytes from one row of A or B to the next, the larger of both
};
AddressBits address_bits(const GpuCall&);

inline bool meets(const AddressBits& bits, const deepgen_kernel& k) {
  return !((bits.a & (k.align_a - 1)) | (bits.b & (k.align_b - 1)) | (bits.d & (k.align_d - 1))) &&
         (!k.most_pitch || bits.pitch <= k.most_pitch);
}

/// Checks the caller's workspace and fills in its slot.
deepgen_status take_workspace(GpuCall&, const deepgen_kernel&);

/// Whether the parts of a description that all GPUs have can be worked with.
bool has_gpu_description(const deepgen_kernel&);

} // namespace deepgen::inline DEEPGEN_ABI_NAMESPACE
