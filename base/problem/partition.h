// Partition: boxes of sizes, each of which takes one kernel, from what is known at points. Pure.
#pragma once

#include "base/problem/size.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace deepgen {

/// A point, and the kernels that may take it.
struct PartitionPoint {
  Sizes at;
  std::vector<size_t> good; ///< the best first; not empty
};

/// Where two boxes meet: along `size`, above `low` and at most at `high`, two points' values of it. A kernel
/// of either side that differ, and the sizes beside it at which both may be compared.
struct PartitionBorder {
  Size size = Size::m;
  int64_t low = 0, high = 0;
  size_t before = 0, after = 0; ///< kernels
  Sizes at;                     ///< the point of `after`
  bool operator==(const PartitionBorder&) const = default;
};

struct PartitionBox {
  SizeSpan span;
  size_t kernel = 0;
};

struct Partition {
  std::vector<PartitionBox> boxes; ///< they cover `all`, each call once; the last has the largest
  std::vector<PartitionBorder> borders;
};

/// Cuts `all` along one size after the other, between two points, until one kernel is good at all points of a
/// box: so that there are few boxes, then where the points are farthest apart, by the ratio of their sizes.
/// `first_of` says where the upper side of a border begins, in (low, high]. Throws
/// Error when the input is malformed: a point twice, outside of `all`, or without a kernel.
Partition partition_of(const SizeSpan& all, const std::vector<PartitionPoint>& points,
                       const std::function<int64_t(const PartitionBorder&)>& first_of);

/// The geometric mean of `low` and `high`, as a border that nobody has measured.
int64_t middle_of(const PartitionBorder&);

/// Why the boxes do not cover `all`, each call once, with the largest call in the last one; empty when they
/// do. A kernel is no matter.
std::string why_no_partition(const SizeSpan& all, const std::vector<SizeSpan>& boxes);

} // namespace deepgen
