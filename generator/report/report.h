// Report: the record logs of searches as tables for people.
#pragma once

#include "base/search/record.h"

namespace deepgen {

/// One table a problem and arch: every candidate, the vendor's library, the winner's gain, and counts by
/// status. `searched` false: not of a search, so that nobody waits for its finals.
std::string report(const std::vector<RecordLog>&, bool searched = true);
struct Study;
/// Means over all problems of a device; empty without a decision.
std::string summary_text(const std::vector<Study>&);
/// Candidate by candidate, as IREE's dispatch profiler prints them, with the best one at the end of each
/// problem.
std::string dispatch_text(const std::vector<Study>&);
/// The same as CSV: a row a candidate that was verified.
std::string dispatch_csv(const std::vector<Study>&);

} // namespace deepgen
