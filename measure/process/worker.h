// A disposable process in which unproven code runs: it may crash, hang or corrupt its memory, and the parent
// goes on.
#pragma once

#include "base/json/json_fwd.h"
#include "base/text/error.h"
#include "measure/process/sandbox.h"

#include <functional>
#include <limits>

namespace deepgen {

/// The worker's end of the pipe: JSON lines to the parent.
class Channel {
public:
  explicit Channel(int fd) : fd_(fd) {}
  void send(const Json& message);
  /// Announces what comes next. The parent kills the worker when nothing more is heard for `limit` seconds.
  void step(const std::string& what, double limit);
  /// From here on the worker can do little but compute and answer. What it needs of files must be open.
  sandbox::State confine(const sandbox::Limits& limits) { return sandbox::enter(fd_, limits); }

private:
  int fd_;
};

/// A message that no worker of ours sends: a kernel has overwritten its worker's memory, or has written in
/// its name. See typed_message.h.
class ForeignMessage : public Error {
public:
  using Error::Error;
};

struct WorkerEnd {
  enum Kind { done, crash, timeout, late } kind = done; ///< late: its time was over, which is nobody's fault
  std::string detail; ///< "SIGSEGV in: strided", "no answer within 10 s in: dense"; empty when done
  std::string
      fault; ///< where a stray access hit an operand, when it did: "access 4 bytes behind the end of B"
  /// Somebody else killed it, the kernel for lack of memory perhaps: not the candidate's fault. Try again,
  /// once.
  bool killed = false;
  int64_t peak_bytes = 0; ///< of memory that it had
};

/// What to throw when a worker was killed twice at one place.
HostFault killed_twice(const WorkerEnd&);

/// Forks, runs `body` in the child and hands each of its messages (but not the steps) to `on_message`. `body`
/// sees the parent's memory as it is now. An Error thrown by `body` is thrown here; lack of memory is a
/// HostFault. Time in which this process was stopped, and the worker with it, is on no limit's account. The
/// child dies with this process. A SIGINT or SIGTERM to this process kills the child first. So does `end`, on
/// the clock of wall_seconds().
WorkerEnd run_worker(const std::function<void(Channel&)>& body,
                     const std::function<void(const Json&)>& on_message,
                     double end = std::numeric_limits<double>::infinity());

} // namespace deepgen
