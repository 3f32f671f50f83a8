// Whether a first round says that a search has nothing to gain.
#pragma once

#include "generator/search/history.h"

namespace deepgen {

/// A lower bound of the smallest ratio in the region that round 0 was taken from, by its fastest candidates,
/// with the default among them; 0 below 16 of them. With the tail index a of the minimum, of k + 1
/// independent values the smallest lies nearer to it than the share r of the (k + 1)-th one's way with
/// probability 1 - (1 - r^a)^k (L. de Haan, Estimation of the minimum of a function using order statistics,
/// J. Am. Stat. Assoc. 76, 1981). Here that is 95 %, a = 2 (a smooth minimum over four parameters), and k a
/// quarter of the candidates. Noise spreads them, which widens the interval.
double smallest_ratio_bound(const std::vector<Trial>&);

} // namespace deepgen
