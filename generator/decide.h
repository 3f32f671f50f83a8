// Decision: the winner of a finished search, a pure function of the final records.
#pragma once

#include "base/record.h"

namespace deepgen {

struct Decision {
  bool found = false;    ///< false: no finalist is correct; `reason` says what became of them
  Record winner;         ///< the record of the chosen config
  bool improved = false; ///< the winner is not the default
  double threshold = 0;  ///< a finalist must be faster than the default by more than this share
  std::string reason;    ///< one line: why this config
};

/// The default stays unless a finalist's upper confidence bound beats it by more than the noise (at least 0.5
/// %) and the log is stable. Among the beaters within the noise of the best: smaller workspace, then smaller
/// code, then text, so that tuning again gives the same answer. When the default itself is not correct, the
/// fastest finalist wins.
Decision decide(const RecordLog& final);

/// The vendor library's record in the finals; nullptr when it was not measured.
const Record* vendor_record(const RecordLog& final);
/// E.g. "openblas 0.3.21", which its records hold as their origin.
inline std::string vendor_name(const Record& vendor) { return vendor.origin; }

} // namespace deepgen
