// The sizes at which a kernel of a problem with ranges is verified.
#pragma once

#include "base/problem/gemm.h"

#include <vector>

namespace deepgen {

/// Of one small range every size; of others the ends, and sizes between that no tile divides. Of several
/// ranges such sizes together. K 0 where K has a range. None of more operations than a build has time for,
/// but the first.
std::vector<Sizes> verified_sizes(const Gemm&);

} // namespace deepgen
