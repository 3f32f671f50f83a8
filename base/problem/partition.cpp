#include "base/problem/partition.h"

#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace deepgen {
namespace {

using Indices = std::vector<size_t>; ///< of points

/// A box that is cut, or takes one kernel.
struct CutNode {
  Indices points;
  size_t kernel = 0;
  PartitionBorder border;
  std::unique_ptr<CutNode> below, above; ///< both or none
};

double log_ratio(int64_t x, int64_t y) {
  return std::log(double(std::max<int64_t>(x, 1)) / double(std::max<int64_t>(y, 1)));
}

/// Chooses cuts: with one range, and as a rule with two, so that there are as few boxes as can be.
class Cutter {
public:
  explicit Cutter(const std::vector<PartitionPoint>& points) : points_(points) {}

  std::unique_ptr<CutNode> cut(const Indices& points) {
    auto node = std::make_unique<CutNode>();
    node->points = points, node->kernel = best_kernel(points).kernel;
    const CutPlan& plan = plan_of(points);
    if (plan.boxes == 1) return node;
    const Side side = plan.side;
    node->border.size = side.size, node->border.low = side.low, node->border.high = side.high;
    node->below = cut(part(points, side, true)), node->above = cut(part(points, side, false));
    name_kernels(*node);
    return node;
  }

private:
  static constexpr size_t kMostPlans = 5000; ///< beyond it cuts are chosen one after the other

  struct Side {
    Size size = Size::m;
    int64_t low = 0, high = 0;
  };
  struct CutPlan {
    size_t boxes = 1;
    Side side;
  };
  struct Best {
    size_t kernel, misfits;
  };
  const std::vector<PartitionPoint>& points_;
  std::map<Indices, CutPlan> plans_;

  /// The kernel that is good at the most of them, and at how many it is not. Of several the one that is
  /// better at the most.
  Best best_kernel(const Indices& points) const {
    std::map<size_t, std::pair<size_t, size_t>> counts; // by kernel: points, places
    for (size_t i : points)
      for (size_t place = 0; place < points_[i].good.size(); ++place) {
        auto& [count, places] = counts[points_[i].good[place]];
        ++count, places += place;
      }
    Best best{0, points.size() + 1};
    size_t least_places = 0;
    for (const auto& [kernel, entry] : counts) {
      const size_t misfits = points.size() - entry.first;
      if (std::tuple(misfits, entry.second) < std::tuple(best.misfits, least_places))
        best = {kernel, misfits}, least_places = entry.second;
    }
    return best;
  }

  Indices part(const Indices& points, const Side& side, bool below) const {
    Indices out;
    for (size_t i : points)
      if ((points_[i].at[side.size] <= side.low) == below) out.push_back(i);
    return out;
  }

  std::vector<Side> sides_of(const Indices& points) const {
    std::vector<Side> sides;
    for (size_t s = 0; s < size_count; ++s) {
      std::set<int64_t> values;
      for (size_t i : points) values.insert(points_[i].at[Size(s)]);
      for (auto low = values.begin(); std::next(low) != values.end(); ++low)
        sides.push_back({Size(s), *low, *std::next(low)});
    }
    return sides;
  }

  const CutPlan& plan_of(const Indices& points) {
    if (const auto found = plans_.find(points); found != plans_.end()) return found->second;
    CutPlan plan;
    if (best_kernel(points).misfits)
      plan = plans_.size() < kMostPlans ? fewest_boxes(points) : next_best(points);
    return plans_[points] = plan;
  }

  CutPlan fewest_boxes(const Indices& points) {
    CutPlan best;
    std::tuple<size_t, double> least{points.size() + 1, 0};
    for (const Side& side : sides_of(points)) {
      const size_t boxes = plan_of(part(points, side, true)).boxes + plan_of(part(points, side, false)).boxes;
      const std::tuple rank(boxes, -log_ratio(side.high, side.low));
      if (rank < least) least = rank, best = {boxes, side};
    }
    return best;
  }

  CutPlan next_best(const Indices& points) const {
    CutPlan best;
    std::tuple<size_t, double> least{points.size() + 1, 0};
    for (const Side& side : sides_of(points)) {
      const size_t misfits =
          best_kernel(part(points, side, true)).misfits + best_kernel(part(points, side, false)).misfits;
      const std::tuple rank(misfits, -log_ratio(side.high, side.low));
      if (rank < least) least = rank, best = {2 + misfits, side};
    }
    return best;
  }

  void leaves(const CutNode& node, std::vector<std::pair<size_t, size_t>>& out) const { // point, kernel
    if (node.below) return leaves(*node.below, out), leaves(*node.above, out);
    for (size_t i : node.points) out.emplace_back(i, node.kernel);
  }

  double distance(size_t x, size_t y) const {
    double sum = 0;
    for (size_t s = 0; s < size_count; ++s)
      sum += std::abs(log_ratio(points_[x].at[Size(s)], points_[y].at[Size(s)]));
    return sum;
  }

  /// Those of the nearest two points on either side that differ in their kernel.
  void name_kernels(CutNode& node) const {
    std::vector<std::pair<size_t, size_t>> below, above;
    leaves(*node.below, below), leaves(*node.above, above);
    double least = -1;
    for (const auto& [x, before] : below)
      for (const auto& [y, after] : above)
        if (const double apart = distance(x, y); before != after && (least < 0 || apart < least))
          least = apart, node.border.before = before, node.border.after = after,
          node.border.at = points_[y].at;
  }
};

void check_partition(const SizeSpan& all, const std::vector<PartitionPoint>& points) {
  const auto refuse = [](const std::string& what) {
    throw Error("no partition can be made: " + what, "partition_of()");
  };
  if (points.empty()) refuse("there are no points");
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].good.empty()) refuse("a point has no kernel");
    if (!all.holds(points[i].at)) refuse("a point is outside of the sizes");
    for (size_t j = 0; j < i; ++j)
      if (points[i].at == points[j].at) refuse("a point is there twice");
  }
}

void place_boxes(const CutNode& node, const SizeSpan& span,
                 const std::function<int64_t(const PartitionBorder&)>& first_of, Partition& out) {
  if (!node.below) return out.boxes.push_back({span, node.kernel});
  const PartitionBorder& b = node.border;
  const int64_t first = std::clamp(first_of(b), b.low + 1, b.high);
  out.borders.push_back(b);
  SizeSpan below = span, above = span;
  below.most[b.size] = first - 1, above.least[b.size] = first;
  place_boxes(*node.below, below, first_of, out);
  place_boxes(*node.above, above, first_of, out);
}

/// Of sizes in the span; exact, as sizes are at most 2^31.
unsigned __int128 calls_of(const SizeSpan& span) {
  unsigned __int128 count = 1;
  for (size_t s = 0; s < size_count; ++s)
    count *= (unsigned __int128)(span.most[Size(s)] - span.least[Size(s)] + 1);
  return count;
}

bool overlap(const SizeSpan& x, const SizeSpan& y) {
  for (size_t s = 0; s < size_count; ++s)
    if (x.most[Size(s)] < y.least[Size(s)] || y.most[Size(s)] < x.least[Size(s)]) return false;
  return true;
}

} // namespace

Partition partition_of(const SizeSpan& all, const std::vector<PartitionPoint>& points,
                       const std::function<int64_t(const PartitionBorder&)>& first_of) {
  check_partition(all, points);
  Indices everything(points.size());
  for (size_t i = 0; i < points.size(); ++i) everything[i] = i;
  Partition out;
  place_boxes(*Cutter(points).cut(everything), all, first_of, out);
  return out;
}

int64_t middle_of(const PartitionBorder& b) {
  return std::clamp<int64_t>(std::llround(std::sqrt(double(b.low) * double(b.high))), b.low + 1, b.high);
}

std::string why_no_partition(const SizeSpan& all, const std::vector<SizeSpan>& boxes) {
  unsigned __int128 left = calls_of(all);
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t s = 0; s < size_count; ++s) {
      const Size size = Size(s);
      if (boxes[i].least[size] < all.least[size] || boxes[i].most[size] > all.most[size] ||
          boxes[i].least[size] > boxes[i].most[size])
        return std::string("its kernels take sizes ") + size_names[s] + " that are none of the problem";
    }
    for (size_t j = 0; j < i; ++j)
      if (overlap(boxes[i], boxes[j])) return "its kernels take sizes twice";
    left -= calls_of(boxes[i]);
  }
  if (left != 0) return "its kernels leave sizes out";
  return boxes.back().most == all.most ? "" : "its kernel for the largest sizes does not take them";
}

} // namespace deepgen
