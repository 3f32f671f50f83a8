// The vendors of GPUs as the entry points of the C interface see them, and what their launches have in
// common. Internal.
#pragma once

#include "runtime/core/arguments.h"

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// What calls of some sizes run, where operands are aligned.
struct GpuDescription {
  const char* config;   ///< null: nothing
  size_t workspace;     ///< bytes that they need at most
  const char* fallback; ///< whether the vendor's library runs in place of the kernel; null: it never does
};

/// What the entry points ask of a vendor's part. Each works on the device that is current on the calling
/// thread.
struct GpuVendor {
  /// DEEPGEN_OK, DEEPGEN_ERROR_NO_DRIVER, DEEPGEN_ERROR_DRIVER (it could not be loaded this time) or
  /// DEEPGEN_ERROR_NO_CONTEXT (which also means: no device).
  deepgen_status (*current)();
  deepgen_status (*launch)(const deepgen_function&, const CallArguments&, deepgen_stream);
  deepgen_status (*prepare)(const deepgen_function&);
  /// Null: what the largest calls run, and the workspace of any.
  deepgen_status (*describe)(const deepgen_function&, const int64_t* sizes, GpuDescription&);
  /// Unloads the function's code and frees its choices.
  void (*forget)(const deepgen_function&);
};
} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {
extern const GpuVendor vendor; ///< archs "sm_..."
} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
namespace deepgen::amd {
inline namespace DEEPGEN_ABI_NAMESPACE {
extern const GpuVendor vendor; ///< archs "gfx..."
} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::amd

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// What deepgen_function::devices points to begins so: a call does not look at every kernel of the function.
struct DeviceTable {
  const GpuVendor* only; ///< only_vendor()
};
/// Whose kernels alone the function has; null: those of both vendors.
const GpuVendor* only_vendor(const deepgen_function&);

/// For deepgen_last_driver_error() on this thread. `text_of` may return null.
void keep_driver_error(int code, const char* (*text_of)(int));

/// One call of a function on a GPU.
struct GpuCall {
  GpuCall(const deepgen_function& f, const CallArguments& a, deepgen_stream s)
      : function(f), args(a), stream(s) {} // leaves `values` to check_arguments()
  const deepgen_function& function;
  const CallArguments& args;
  deepgen_stream stream;
  ArgumentValues values;
};

/// Where a call's operands lie.
struct Placement {
  struct {
    uint64_t bits;  ///< that are set in base, leading dimension or stride, in bytes; 0 of what is not used
    uint64_t pitch; ///< bytes from one row of a matrix to the next
  } operand[DEEPGEN_MOST_OPERANDS];
};
Placement placement_of(const GpuCall&);

/// Whether a kernel can work with that, in a call of these sizes.
bool meets(const Placement&, const int64_t* sizes, const deepgen_kernel&, uint32_t operand_count);

/// Lowers a grid to that of a call of these sizes.
inline void lower_grid(const deepgen_launch& l, const int64_t* sizes, uint32_t (&grid)[3]) {
  for (int i = 0; l.grid_rules && i < 3; ++i) {
    const int64_t blocks = at_sizes(l.grid_rules[i], sizes, grid[i]);
    if (blocks < grid[i]) grid[i] = uint32_t(blocks);
  }
}

/// Whether the caller's workspace has these bytes, aligned.
deepgen_status check_workspace(const CallArguments&, size_t bytes);

/// Checks the caller's workspace and fills in its slot.
deepgen_status take_workspace(GpuCall&, const deepgen_kernel&);

/// Whether the parts of a description that all GPUs have can be worked with.
bool has_gpu_description(const deepgen_kernel&, const deepgen_function&);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
