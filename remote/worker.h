// The worker: what a launcher starts on another host. It runs one command of its own program on files that
// come by its standard input, and sends what the command has written by its standard output. It listens on
// nothing, keeps nothing, and ends with whoever started it.
#pragma once

#include "remote/message.h"

#include <functional>

namespace deepgen {

struct WorkerProgram {
  std::string version; ///< for its first line
  /// What a request for kernels of an arch has to ask for: one for another program is refused.
  std::function<std::string(const std::string& arch)> id;
  std::vector<std::string> commands; ///< that requests may ask for
  /// Runs a command in a child of the worker, which saves a start of the program; else it is started again.
  std::function<int(const std::vector<std::string>& command)> run = {};
  /// Why a request that wants a device must not run here; empty when it may.
  std::function<std::string(const Request&)> why_not = {};
};

/// Serves one request. Returns the status to exit with: 0 when an answer was sent.
int serve(const WorkerProgram&);

} // namespace deepgen
