// Decision: the winner of a finished search, a pure function of the final records.
#pragma once

#include "base/search/record.h"

namespace deepgen {

struct Decision {
  bool found = false;    ///< false: no finalist is correct; `reason` says what became of them
  Record winner;         ///< the record of the chosen config; of the hold-out where there is one
  bool improved = false; ///< the winner is not the default
  double threshold = 0;  ///< a finalist must be faster than the default by more than this share
  std::string reason;    ///< one line: why this config
  Timing timing = {};    ///< of the winner, over the regimes that were tuned for
  /// Finalists that the noise does not tell from the best one, the winner among them.
  std::vector<Choice> alike = {};
};

/// What the finals alone say. The default stays unless a finalist's upper confidence bound beats it by more
/// than the noise (at least 0.5 %) and the log is stable. Among the beaters within the noise floor of the
/// best: who is as fast as any of them in serial calls, where all were timed in these; then smaller
/// workspace, then smaller code, then text, so that tuning again gives the same answer. When the default
/// itself is not correct, the fastest finalist wins.
///
/// Of a search for balanced calls (base/kernel/regime.h) ratios and noise are geometric means over both
/// regimes, where the default has both; finalists that lack one are left out. Who loses to the vendor in one
/// of them, by more than the noise there, is left out as long as another finalist does not, the default too.
Decision decide_finals(const RecordLog& final);

/// The above, confirmed by the hold-out, which alone says how much faster the winner is: being the fastest of
/// several in the finals is luck in part. A winner that is not faster than the default there, or whose clock
/// leaves that open, gives way to the default: but not to one that loses to the vendor in a regime where the
/// winner does not. Logs without a hold-out are decided by their finals.
Decision decide(const RecordLog& final);

/// What a finalist must gain to be a winner.
double threshold_of(double noise_floor);
/// That of the log: of both regimes, for balanced calls.
double noise_of(const RecordLog& final);

/// Where the interval of a ratio of times lies: "win" below 1 by more than `noise`, "loss" above it, "tie"
/// within it, "AMBG" when it reaches over one of these borders.
std::string verdict(double low, double high, double noise);

/// The vendor library's record: in the hold-out, or else in the finals; nullptr when it was not measured.
const Record* vendor_record(const RecordLog& final);
/// E.g. "openblas 0.3.21", which its records hold as their origin.
inline std::string vendor_name(const Record& vendor) { return vendor.origin; }

} // namespace deepgen
