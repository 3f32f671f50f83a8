// Verifies GPU kernels in worker processes: each file gets a verdict, whatever its kernels do to the device.
#pragma once

#include "base/kernel/kernel.h"
#include "measure/process/progress.h"
#include "measure/values/verify.h"

#include <functional>
#include <limits>

namespace deepgen::cuda {

struct VerifyOptions {
  int ordinal = 0;          ///< of the device, as CUDA_VISIBLE_DEVICES shows them
  std::string uuid;         ///< when given, the device is found by this
  double call_seconds = 10; ///< a call without an answer for longer hangs
  double deadline = 1e300;  ///< on the clock of wall_seconds(); files not begun by then get no verdict
  /// On the same clock: nothing runs any more.
  double end = std::numeric_limits<double>::infinity();
  uint64_t seed = 1;
  int64_t zone = 4096; ///< bytes of canaries before and behind every operand
};

/// Hands on the verdict of each file, in order: all its kernels in all their cases. "crash" and "timeout"
/// carry the driver's text; the files after it are verified by a new worker. Returns how many have a verdict.
/// Throws Error when the device cannot be used at all.
size_t verify_files(const std::vector<const KernelFile*>& files, VerifyOptions options,
                    const std::function<void(size_t, const Verdict&)>& on_verdict);

/// deepgen-measure verify: prints a line for each file and a summary; returns whether all are good.
struct VerifyCommand {
  std::vector<std::string> files;
  VerifyOptions options;
};
bool verify(const VerifyCommand&);

} // namespace deepgen::cuda
