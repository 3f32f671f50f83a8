// A workload for people: a table for the terminal, and one as CSV.
#pragma once

#include "workload/workload.h"

namespace deepgen {

/// The heaviest problems, what lay below the threshold, and what was skipped and why.
std::string workload_table(const Workload&, size_t most_rows);
/// A row for each problem, kept or below the threshold, and for each reason; in all, the calls and the
/// seconds of the logs.
std::string workload_csv(const Workload&, const std::vector<WorkloadProblem>& below);

} // namespace deepgen
