// Points: the sizes at which kernels of a problem with ranges are compared.
#pragma once

#include "base/problem/gemm.h"

#include <optional>
#include <vector>

namespace deepgen {

/// Of each range both ends (1 for 0) and powers of four between, thinned evenly to at most `most`; with
/// several ranges the first, second, ... of each together, and the corners where one range is least and the
/// others are most. Ascending by the product of sizes. Without ranges: the sizes themselves.
std::vector<Sizes> default_points(const Gemm&, size_t most = 8);

/// Those, and between neighbours of which one size alone differs three more: a little above the lower one,
/// the geometric mean, and a little above that. Powers of two flatter tiles: a kernel whose tiles fill a
/// device at 256 rows may need two turns at 269. There kernels of a search that knows the points are compared
/// once more.
std::vector<Sizes> final_points(const Gemm&);
/// The first size that is a range: kernels of a function share the calls by it.
std::optional<Size> split_size(const Gemm&);

} // namespace deepgen
