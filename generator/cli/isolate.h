// Runs a piece of work in a child process, so that a crash or a hang in it is a result and not the end of the
// build.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace deepgen {

struct Isolated {
  std::string result; ///< what `work` returned
  std::string
      failure; ///< how the child ended, e.g. "was killed by signal 6 (Aborted)"; empty when all went well
  std::string errors;  ///< what the child wrote to stderr, and the text of its exception
  bool threw = false;  ///< it ended by an exception
  bool killed = false; ///< by SIGKILL from elsewhere: a person, or the kernel for lack of memory
  /// What the host could not do, which says nothing about `work`: it threw a HostFault, or had no memory.
  /// Else empty.
  std::string host;
  int64_t peak_bytes = 0; ///< of memory that the child had
};

/// The child dies with the caller, however that ends. Time in which both are stopped does not count.
Isolated run_isolated(const std::function<std::string()>& work, double seconds);

} // namespace deepgen
