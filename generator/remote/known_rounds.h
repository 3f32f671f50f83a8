// Rounds that sites have measured before, in this host's cache: what it has is not sent again.
#pragma once

#include "base/files/cache.h"
#include "generator/remote/command_line.h"

#include <optional>
#include <string>

namespace deepgen {

/// One round, by all that its log depends on: the kernels' bytes, the plan, the model of the device, its
/// driver and power limit, the options, the earlier rounds, and what measures. Names and folders do not
/// matter.
class KnownRounds {
public:
  /// `line`: a command of `deepgen-measure`. Only rounds are kept; finals are timed for each decision.
  KnownRounds(const CommandLine& line, const std::string& measured_by);

  std::optional<std::string> find(); ///< the log, whose records say that they are from the cache
  /// Keeps a log, unless the moment has decided something in it: a crash, a time-out, another's work.
  void keep(const std::string& log);

private:
  Cache cache_;
  std::string key_; ///< empty: nothing is known, and nothing kept
};

/// Kernel files of the slots of a `run`; none of another command.
std::vector<std::string> kernels_of_round(const CommandLine&);

/// Beside the device.json at `path`: what times on the device depend on besides its model.
std::string surroundings_path(const std::string& path);

} // namespace deepgen
