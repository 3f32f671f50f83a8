// Which kernels of a function a device runs, loaded and in the order in which a call tries them. Internal.
#pragma once

#include "runtime/cuda_load.h"

namespace deepgen::nvidia {

struct PreparedKernel {
  const deepgen_kernel* kernel;
  PreparedLaunch* launches;
};

/// What one device runs of one function; made once, never changed.
struct Choice {
  size_t workspace; ///< the largest of the kernels'
  uint32_t count;   ///< at least 1
  PreparedKernel kernels[1];
};

/// The choice for the device of the current context; makes it at the first call.
deepgen_status choose(const Driver&, const deepgen_function&, const Choice*&);

/// Better is lower: tuned on a device of this name; for this device's arch or an earlier one of its major
/// version; PTX. Within each, the latest arch. Equals keep the order of the table.
constexpr uint32_t cannot_run = ~0u;
uint32_t standing(const deepgen_kernel&, const Device&);

/// Between construction and destruction this thread may load code although some stream is being captured.
class LoadsDuringCapture {
public:
  explicit LoadsDuringCapture(const Driver& d) : driver_(d) { driver_.exchange_capture_mode(&mode_); }
  ~LoadsDuringCapture() { driver_.exchange_capture_mode(&mode_); }
  LoadsDuringCapture(const LoadsDuringCapture&) = delete;
  LoadsDuringCapture& operator=(const LoadsDuringCapture&) = delete;

private:
  const Driver& driver_;
  int mode_ = capture_mode_relaxed;
};

} // namespace deepgen::nvidia
