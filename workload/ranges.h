// Problems that differ in one size alone, as one with a range of it.
#pragma once

#include "workload/workload.h"

namespace deepgen {

/// Of two and more GEMMs that differ in this size alone makes one, whose range goes from the least to the
/// most of them. Returns how many have become part of one.
size_t merge_ranges(Workload&, Size);

/// Calls, seconds of one and `timed` of a problem, by its points.
void sum_points(WorkloadProblem&);

/// For what sizes a problem with points is tuned: at most ten, both ends and the heaviest. The calls of the
/// others count for the nearest.
struct TuneTexts {
  std::string at, weights; ///< "8 64 512", "0.9 0.08 0.02"
};
TuneTexts tune_texts(const WorkloadProblem&);

/// "8 64 100 512": all points.
std::string sizes_text(const WorkloadProblem&);

/// Throws Error unless the problem has one range, and the points are sizes of it, ascending.
void check_points(const WorkloadProblem&, const std::string& where);

} // namespace deepgen
