// What a problem with ranges gets without measurements: the estimate's best configs at a few points, each for
// the sizes around its points.
#pragma once

#include "base/problem/points.h"
#include "generator/space/space.h"

namespace deepgen {

struct RangedChoice {
  Choice choice;
  SizeSpan taken;
  bool operator==(const RangedChoice&) const = default;
};

/// They cover all sizes that calls may pass, each once, in boxes (base/problem/partition.h). Estimated at the
/// points;
/// at most points.kernels, and no more than six. Throws Error as Space does.
std::vector<RangedChoice> ranged_default(const Problem&, const std::string& arch, const Device&,
                                         const TunePoints& points);

} // namespace deepgen
