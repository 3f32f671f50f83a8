// A function's call of cuBLASLt or hipBLASLt on one device: all that does not change from call to call.
// Internal.
#pragma once

#include "runtime/gpu/gpu.h"
#include "runtime/gpu/gpu_select.h"
#include "runtime/gpu/lt_library.h"

#include <atomic>

namespace deepgen {
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
  uint32_t count;              ///< of descriptions; with 1, nothing in it changes, and threads share it
  std::atomic<uint32_t> state; ///< Fallback
};

/// Whether the description, of a call of this library, can be worked with.
bool well_formed(const deepgen_vendor_call&, const deepgen_function&, deepgen_library);

/// What is the same in both vendors' parts.
struct LtDevice {
  const char* name;
  int ordinal;
};

/// Null, and why: the tuned kernel runs. Not thread-safe.
LtCall* prepare_call(const deepgen_function&, const deepgen_vendor_call&, const LtDevice&, FindLt,
                     Fallback& why);
void discard(LtCall*);
inline Fallback state_of(const LtCall& call) { return Fallback(call.state.load(std::memory_order_acquire)); }

/// Whether a call's operands lie as those that were timed: dense, and well aligned.
bool is_as_timed(const GpuCall&, const deepgen_vendor_call&);

enum class LtOutcome {
  enqueued,
  not_run, ///< nothing was enqueued: the kernel has to run
  lost     ///< it failed midway, and may have written what it reads: DEEPGEN_ERROR_DRIVER
};
LtOutcome enqueue(const GpuCall&, const deepgen_vendor_call&, LtCall&);

/// Whether the vendor's library is to run in place of the kernel; then `status` is what became of that.
/// False: the kernel has to run.
template <typename Driver>
bool enqueue_call(const Driver& d, const GpuCall& call, const deepgen_vendor_call& vendor, LtCall& prepared,
                  deepgen_status& status) {
  if (state_of(prepared) != Fallback::runs || !is_as_timed(call, vendor)) return false;
  status = check_workspace(call.args, vendor.workspace);
  if (status) return true;
  LoadsDuringCapture<Driver> loads(d); // the library loads a kernel when it first enqueues it
  const LtOutcome outcome = enqueue(call, vendor, prepared);
  if (outcome == LtOutcome::lost) status = DEEPGEN_ERROR_DRIVER;
  return outcome != LtOutcome::not_run;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
