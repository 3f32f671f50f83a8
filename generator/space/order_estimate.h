// Of a batch invariant problem: what the estimate says of the orders in which its kernels may add up over K.
#pragma once

#include "base/problem/points.h"
#include "generator/space/space.h"

namespace deepgen {

struct OrderEstimate {
  std::string order;           ///< Template::sum_order()
  std::vector<Choice> best;    ///< of this order, at each point: legal in the problem
  std::vector<double> seconds; ///< of these
};

/// What rules and estimates of calls of these sizes look at. Spaces of GPUs know ranges: gemv has a parameter
/// for them.
Problem problem_at(const Problem&, const std::string& arch, const Sizes&);

/// The orders of the best configs at the points, by the weighted geometric mean of their times there: the
/// first is the one to choose. Throws Error as Space does.
std::vector<OrderEstimate> estimated_orders(const Problem&, const std::string& arch, const Device&,
                                            const std::vector<Sizes>& at, const std::vector<double>& weights,
                                            const SearchOptions& = {});

} // namespace deepgen
