// The kernels that a finished search of a problem with ranges links, and the calls that each takes: a pure
// function of the final records.
#pragma once

#include "base/problem/points.h"
#include "base/search/decide.h"

namespace deepgen {

struct RangedWinner {
  Record record;  ///< of stage "final"
  SizeSpan taken; ///< from the first sizes that take it to the last
};

/// Where two parts meet: along `size`, above `low` and at most at `high`.
struct RangedBorder {
  Size size = Size::m;
  int64_t low = 0, high = 0;
  std::string before, after; ///< SHA-256 of kernels on either side
  Sizes at;                  ///< the sizes beside it at which both are compared
  bool known = false;        ///< it is at `high`, where a kernel has a block more: nothing is to be measured
};

/// The bound of a crossover, at the points of the finals: none is more than kMostRegret behind the best
/// finalist, or behind the default by more than noise.
struct RangedBound {
  bool kept = true;
  size_t needed = 0; ///< so many kernels can keep it
};

/// What to say where it is not kept.
std::string bound_text(const RangedBound&);

struct RangedDecision {
  bool found = false; ///< false: no finalist is correct and timed at every point
  std::vector<RangedWinner>
      parts; ///< they cover the ranges, each call once; the largest calls are the last's
  std::vector<RangedBorder> borders; ///< where they meet
  bool improved = false;             ///< not the default alone
  double regret = 0, worst = 0;      ///< of the crossover, at the points of the finals
  std::optional<RangedBound> bound;  ///< nothing where the finals do not decide
  std::string reason;                ///< one line
  /// Of a batch invariant problem: in which order all of them add up over K, and how many times as long they
  /// take as the best of the finalists of all orders would, at the points by weight.
  std::string sum_order;
  double order_cost = 1;
};

/// What the finals say, by a crossover over all their points; of a batch invariant problem, among the kernels
/// of the order of sums that is then the fastest. Kernels share the calls in boxes
/// (base/problem/partition.h). The points,
/// their weights and the most kernels are those of the search ("tune_at" of the environment). The default
/// counts as faster by the noise, so that others take its place for more than that; and no point takes longer
/// than by it, where KERNELS are enough. Where the hold-out finds the chosen ones slower than the default on
/// average, or too much interfered, the default takes all calls. Borders are the measured ones ("borders" of
/// the environment), else the geometric mean of the points around them. Of a search for balanced calls all
/// ratios are geometric means over both regimes; where a finalist was not timed in bursts at a point, they
/// count as having changed its ratio as the others' there.
///
/// Where records tell their grids and one size is a range, the choice is over the steps of all finalists, too
/// (ranged_steps.h), with their predicted times, and a border is at a step. What was measured counts before
/// what is predicted: the bound is kept at the points where it can be; and where kernels chosen with
/// predictions are slower there on average, by more than the noise, those of the points alone are taken.
RangedDecision decide_ranges(const Problem&, const RecordLog& final);

/// A size between the points of the finals at which a further measurement matters: predictions leave open
/// which kernel is the best there, and by much.
struct DoubtfulSize {
  Sizes at;
  std::vector<std::string> kernels; ///< SHA-256: the chosen one, then who may be faster
};
/// At most `most`, no two between the same points; none where nothing is predicted.
std::vector<DoubtfulSize> doubtful_sizes(const Problem&, const RecordLog& final, size_t most);

/// The same as the decision of any search, for tables: the kernel of the largest calls, with the geometric
/// mean of what the hold-out says of all points.
Decision mean_decision(const Problem&, const RecordLog& final);

/// What the search was for: "tune_at" of a log's environment, else default_tune_points().
TunePoints points_of(const Problem&, const RecordLog&);

/// A border that was measured: `after` is faster from `first` on.
struct Border {
  std::string before, after; ///< SHA-256
  int64_t first = 0;
  std::optional<Size> size = {}; ///< nothing with one range
  Sizes at = {};                 ///< where `size` is told: the sizes beside it
};
/// In "borders" of a log's environment. Throws Error when they are malformed.
std::vector<Border> borders_of(const Json& environment);
Json to_json(const std::vector<Border>&);

/// Of one point of the hold-out, in one regime.
struct HeldOut {
  double seconds = 0;
  double ratio = 1, low = 1, high = 1; ///< to the default
  double vendor = 0;                   ///< its time over the kernel's; 0: it was not timed
};
/// In "points" of a log's environment.
struct RangedHoldout {
  Sizes at;
  std::string sha256;                 ///< of the kernel that takes it
  HeldOut first;                      ///< sustained, unless bursts alone were tuned for
  std::optional<HeldOut> bursts = {}; ///< of a search for balanced calls
  HeldOut both() const;               ///< geometric means over what there is
};
std::vector<RangedHoldout> holdout_of(const Json& environment);
Json to_json(const std::vector<RangedHoldout>&);

} // namespace deepgen
