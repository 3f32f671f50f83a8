// Report: the record logs of searches as tables for people.
#pragma once

#include "base/record.h"

namespace deepgen {

/// One table a problem and arch: every candidate, the vendor's library, the winner's gain, and counts by
/// status.
std::string report(const std::vector<RecordLog>&);
struct Study;
/// Means over all problems of a device; empty without a decision.
std::string summary_text(const std::vector<Study>&);

} // namespace deepgen
