// What the finals of a problem with a range say of the sizes between their points: predictions from the grids
// of the finalists, and the choice at all their steps.
#pragma once

#include "base/problem/problem.h"
#include "base/ranges/crossover.h"
#include "base/ranges/step_table.h"
#include "base/search/record.h"

#include <functional>
#include <optional>

namespace deepgen {

/// Over both regimes where there are two; 0: not timed there.
using RatioAt = std::function<double(const Record&, const Sizes&)>;

/// At a point of the finals, or between; nullptr: not timed there.
const PointTiming* timed_at(const Record&, const Sizes&);

/// Finalists at the points of the finals and between.
struct RangedSteps {
  Size along = Size::m;
  Sizes beside; ///< the other sizes
  StepTable table;

  Sizes at(size_t place) const;
  /// As the crossover compares them; `favour`: the share of its time that the default is given.
  std::vector<CrossoverKernel> kernels(const std::vector<const Record*>&, double favour) const;
  bool starts_at(int64_t size) const; ///< some kernel has a block more there
  /// Places of the points, ascending.
  std::vector<size_t> points() const;
};

/// `points`: ascending; at which each record was timed or, unless `everywhere`, some. Nothing where a record
/// does not tell its grids, where several sizes are ranges, or where too few points are known to tell
/// anything from them.
std::optional<RangedSteps> ranged_steps(const Problem&, const std::vector<const Record*>&,
                                        const std::vector<Sizes>& points, const RatioAt&,
                                        bool everywhere = true);

/// Who to add to the chosen ones: whoever brings them the most nearer to the best at all steps, then so
/// again; at most `most`, in this order. Sizes count by their logarithm.
std::vector<size_t> who_is_missing(const StepTable&, const std::vector<size_t>& chosen, size_t most);

/// The crossover over the points and over what is predicted between: the tightest that can be had of three
/// bounds for predicted sizes, as measured ones come first. Its `at`, `regrets`, `regret` and `worst` are of
/// the points alone. The bound of rules.limits, too: of each point. `weights`: of each point.
Crossover choose_with_steps(const RangedSteps&, const std::vector<CrossoverKernel>&,
                            const std::vector<double>& weights, const CrossoverRules&);

/// Of each place of the table: the kernel of the set. `limits`: of each point, or none.
std::vector<size_t> share_steps(const RangedSteps&, const std::vector<CrossoverKernel>&,
                                const std::vector<size_t>& set, const CrossoverRules&);

/// Tells a crossover of the points what they have been given: `at` of each place. `points`: their places.
void take_shares(const std::vector<size_t>& points, const std::vector<CrossoverKernel>&,
                 const std::vector<size_t>& at, const std::vector<double>& weights, Crossover&);

/// A size at which a further measurement matters, and the kernels that may be the best there.
struct DoubtfulStep {
  size_t place = 0;
  std::vector<size_t> kernels; ///< the chosen one first
};

/// Between two points at most one each: where the chosen kernel may be the farthest behind another one, by
/// what predictions may be off. At most `most`, those that weigh most. `at`: of each place the chosen one.
std::vector<DoubtfulStep> doubtful_steps(const RangedSteps&, const std::vector<size_t>& at, size_t most);

} // namespace deepgen
