// Verifies candidates in worker processes: each one gets a verdict, whatever it does.
#pragma once

#include "measure/process/progress.h"
#include "measure/race/candidates.h"
#include "measure/values/verify.h"

#include <limits>

namespace deepgen {

struct VerifyOptions {
  int64_t device_isa = 1;
  double call_seconds = 10; ///< a call without an answer for longer hangs; see call_limit()
  double deadline = 0;      ///< on the clock of wall_seconds(); candidates not begun by then are "dropped"
  /// On the same clock: nothing runs any more.
  double end = std::numeric_limits<double>::infinity();
  uint64_t seed = 1;
};

/// For every open candidate: the main kernel on the tuned shape, the awkward kernel on its own, and fallbacks
/// that this device can run. Bad ones are decided, good ones stay open with their error filled in. `cases` is
/// for the problem.
void verify_all(const std::vector<Candidate*>& candidates, CaseSet& cases, VerifyOptions options,
                Progress& progress);

} // namespace deepgen
