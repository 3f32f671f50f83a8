// Sweep: the plans of a whole space, whose records make a RecordedSpace.
#pragma once

#include "base/kernel/device.h"
#include "base/search/plan.h"
#include "base/search/record.h"
#include "base/search/search_options.h"

namespace deepgen {

struct SweepOptions {
  SearchOptions search; ///< what is in the space
  size_t chunk = 32;    ///< configs of a plan, which are timed against each other
  uint64_t seed = 1;    ///< of the order: what an unfinished sweep has is then a fair sample
  double within = 0.05; ///< of the best, what is timed again
  int first_round = 0;
};

/// All legal configs that the options allow; the very first one is the default, the anchor of all plans. With
/// `logs` only the fastest of them: the best of thousands of times is the luckiest one, until it is timed
/// again.
std::vector<Plan> sweep_plans(const Problem&, const std::string& arch, const Device&, const SweepOptions&,
                              const std::vector<RecordLog>& logs);

} // namespace deepgen
