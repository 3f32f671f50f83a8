// Runs a piece of work in a child process, so that a crash or a hang in it is a result and not the end of the
// build.
#pragma once

#include <functional>
#include <string>

namespace deepgen {

struct Isolated {
  std::string result; ///< what `work` returned
  std::string
      failure; ///< how the child ended, e.g. "was killed by signal 6 (Aborted)"; empty when all went well
  std::string errors; ///< what the child wrote to stderr, and the text of its exception
  bool threw = false; ///< it ended by an exception
  bool killed = false; ///< by SIGKILL from elsewhere: a person, or the kernel for lack of memory
};

/// The child dies with the caller, however that ends.
Isolated run_isolated(const std::function<std::string()>& work, double seconds);

} // namespace deepgen
