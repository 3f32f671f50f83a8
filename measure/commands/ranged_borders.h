// Where the second of two kernels becomes the faster one: which size to compare them at next.
#pragma once

#include "base/search/ranged_decision.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace deepgen {

class BorderSearch {
public:
  static constexpr int turns = 4; ///< comparisons at most
  /// `steps`: sizes within the border at which a kernel has a block more: between two of them nothing changes
  /// that only one of the kernels could gain by. Without steps it is halved, to an eighth of its size.
  /// `alike`: where one is ahead by no more than this (log), both are as good.
  BorderSearch(const RangedBorder&, std::vector<int64_t> steps, double alike);

  /// Nothing when the border is found.
  std::optional<int64_t> next() const;
  /// By how much the second one is faster (log) at next().
  void tell(double lead);
  /// The first size of the second one; its upper end while nothing is told.
  int64_t found() const;

private:
  std::vector<int64_t> steps_;
  double alike_;
  int64_t low_,
      high_; ///< of steps their numbers: the second one is slower before `low_`, faster from `high_` on
  int64_t upper_;
  int told_ = 0;
  bool found_ = false;
};

} // namespace deepgen
