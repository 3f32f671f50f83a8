#include "measure/commands/ranged_borders.h"

#include <cmath>
#include <utility>

namespace deepgen {

namespace {

constexpr int64_t kNear = 8;

} // namespace

BorderSearch::BorderSearch(const RangedBorder& border, std::vector<int64_t> steps, double alike)
    : steps_(std::move(steps)), alike_(alike), low_(steps_.empty() ? border.low : 0),
      high_(steps_.empty() ? border.high : int64_t(steps_.size())), upper_(border.high) {}

std::optional<int64_t> BorderSearch::next() const {
  if (found_ || told_ == turns) return std::nullopt;
  if (!steps_.empty())
    return low_ < high_ ? std::optional(steps_[size_t(low_ + (high_ - low_) / 2)]) : std::nullopt;
  if ((high_ - low_) * kNear <= high_) return std::nullopt;
  const int64_t middle = std::llround(std::sqrt(double(low_) * double(high_)));
  return middle > low_ && middle < high_ ? std::optional(middle) : std::nullopt;
}

void BorderSearch::tell(double lead) {
  const int64_t middle = steps_.empty() ? *next() : low_ + (high_ - low_) / 2;
  if (lead > 0)
    high_ = middle;
  else
    low_ = middle + !steps_.empty();
  found_ = steps_.empty() && std::abs(lead) <= alike_;
  ++told_;
}

int64_t BorderSearch::found() const {
  if (steps_.empty()) return high_;
  return high_ < int64_t(steps_.size()) ? steps_[size_t(high_)] : upper_;
}

} // namespace deepgen
