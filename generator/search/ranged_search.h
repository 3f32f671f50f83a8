// The search of a problem with ranges: each point is searched as the problem of its size, with the times that
// all candidates have there.
#pragma once

#include "generator/search/search.h"

namespace deepgen {

/// The points propose in turn what next_plan() proposes for the problem of their size, as far as it serves
/// the whole range. Round 0 begins with the default (the estimate's best for the largest calls) and the
/// lock's kernels. A point whose search has ended proposes nothing. Of a
/// batch invariant problem the first round is of the two orders of sums that the estimate likes best, later
/// ones of that which was the fastest. The same input gives the same plan.
Plan next_ranged_plan(const SearchInput&, const std::vector<Choice>& incumbents);

/// A size has few candidates among many sizes: those that the estimate tells apart come first, then those
/// that differ from one of these in what it does not tell, as in stages. Both keep their order.
void put_different_first(const Problem&, const Device&, std::vector<PlanSlot>&);

} // namespace deepgen
