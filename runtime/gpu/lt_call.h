// A function's call of cuBLASLt on one device: all that does not change from call to call. Internal.
#pragma once

#include "runtime/gpu/gpu.h"
#include "runtime/nvidia/cublas_lt.h"
#include "runtime/nvidia/cuda_load.h"

#include <atomic>

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// Descriptions of the multiplication hold pointers of a call where it has a bias or scales. So there are
/// several, and a thread has one for itself while it enqueues.
struct LtCall {
  static constexpr uint32_t most_descriptions = 16;

  const LtLibrary* library;
  void* handle;
  void *a, *b, *d; ///< layouts
  void* descriptions[most_descriptions];
  std::atomic<bool> taken[most_descriptions];
  uint32_t count; ///< of descriptions; with 1, nothing in it changes, and threads share it
  uint32_t scale_type;
  std::atomic<uint32_t> state; ///< Fallback
};

/// Whether the description can be worked with.
bool well_formed(const deepgen_vendor_call&, const deepgen_function&);

/// Null, and why: the tuned kernel runs. Not thread-safe.
LtCall* prepare_call(const Driver&, const deepgen_function&, const deepgen_vendor_call&, const Device&,
                     Fallback& why);
void discard(LtCall*);

/// Whether a call's operands lie as those that were timed: dense, and well aligned.
bool is_as_timed(const GpuCall&, const deepgen_vendor_call&);

enum class LtOutcome {
  enqueued,
  not_run, ///< nothing was enqueued: the kernel has to run
  lost     ///< it failed midway, and may have written what it reads: DEEPGEN_ERROR_DRIVER
};
LtOutcome enqueue(const Driver&, const GpuCall&, const deepgen_vendor_call&, LtCall&);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
