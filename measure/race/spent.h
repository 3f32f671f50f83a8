// Spent: where the wall time of one measurement went, for its log.
#pragma once

#include "base/json/json_fwd.h"

#include <string>

namespace deepgen {

/// Seconds.
struct Spent {
  double waiting = 0; ///< for the device, and in the finals for compiles to end
  double verifying = 0;
  double vendor = 0;    ///< asking the vendor library for algorithms
  double preparing = 0; ///< operands of the tuned size, outside of any worker
  double making = 0;    ///< a worker's start, loading code, graphs, the first call of each arm
  double settling = 0;  ///< heating the device until its clock is steady
  double timing = 0;    ///< samples
  struct Start {
    int count = 0;
    double seconds = 0; ///< until the first arm is made, with its operands; a part of `making`
  };
  Start starts, further; ///< of workers; of races in a worker that has had one
  Json to_json() const;  ///< without what is 0
  /// Counts as `preparing` what of so many seconds nothing else has counted.
  void complete(double elapsed);
};

/// Runs up from when it was made, or last read.
class Lap {
public:
  Lap();
  double seconds();

private:
  double last_;
};

/// The date and time now: 2026-11-22T02:45:00Z.
std::string utc_now();

} // namespace deepgen
