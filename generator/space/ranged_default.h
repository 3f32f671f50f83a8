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

/// Ascending by size; they cover all sizes that calls may pass, each once. Split along the first range alone:
/// of others each has all. Estimated at the values that the points have of it, with the others at their most;
/// at most points.kernels, and no more than six. Throws Error as Space does.
std::vector<RangedChoice> ranged_default(const Gemm&, const std::string& arch, const Device&,
                                         const TunePoints& points);

} // namespace deepgen
