// A call that threads share out, cut and run as the runtime cuts and runs it.
#pragma once

#include "base/problem/problem.h"
#include "measure/values/loader.h"
#include "runtime/core/floating_point.h"

#include <vector>

namespace deepgen {

/// How many threads calls of the problem are timed on: those that it is tuned for, or one where a call has so
/// little work that the runtime never shares it out.
int shared_by(const Problem&);

/// Bytes of a task's workspace, of a kernel that needs so many; the tasks' pieces lie one behind the other.
int64_t workspace_piece(int64_t workspace);

class ThreadCall {
public:
  /// The workspace that `values` have is of `threads` pieces. What they point to must outlive the call.
  ThreadCall(const Kernel&, const SlotValues& values, int threads);
  /// Starts the runtime's threads in this process, the caller being one of them.
  static void start(int threads);

  void run();
  int tasks() const { return int(blocks_.size()); }

private:
  static void run_task(void* call, int index);

  LoadedKernel kernel_;
  std::vector<std::vector<uint64_t>> blocks_; ///< a task's arguments
  FloatingPoint floating_point_;
};

} // namespace deepgen
