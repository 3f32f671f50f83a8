// The timing of a round of a problem with ranges: candidates at the sizes that they are for.
#pragma once

#include "measure/commands/sized_field.h"
#include "measure/process/progress.h"
#include "measure/race/candidates.h"

#include <functional>

namespace deepgen {

/// The points, and all sizes that candidates are for.
std::vector<Sizes> sizes_of_round(const std::vector<Sizes>& points, const std::vector<Candidate*>&);

/// Fills in the records of `list`, whose first one is the anchor, and decides them. A race a size, with an
/// equal share of the `seconds`, of the anchor and the candidates that are for it; what fails at one is left
/// out of the next. Where the anchor fails, all over again with the next one in its place, as ratios of all
/// sizes are to one kernel. Returns the results of all races.
std::vector<ArmResult> time_at_points(const std::vector<Sizes>& sizes, const std::vector<Candidate*>& list,
                                      const std::function<std::unique_ptr<SizedField>(const Sizes&)>& field,
                                      const RaceOptions&, double seconds, Progress&);

} // namespace deepgen
