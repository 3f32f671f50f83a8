// A rough time for a problem, where a log has none: only the ratios between problems count.
#pragma once

#include "base/problem/problem.h"

namespace deepgen {

/// Of one call on a data centre's GPU: a launch, then the longer of computing and moving memory.
double estimated_seconds(const Problem&);
/// Of a call of which nothing else is known; 0 for 0.
double estimated_seconds(double flops);

} // namespace deepgen
