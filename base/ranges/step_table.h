// Several kernels at all sizes at which one of them has a block more than before. Pure.
#pragma once

#include "base/ranges/step_times.h"

namespace deepgen {

/// Times at measured sizes and at predicted ones.
struct StepTable {
  std::vector<int64_t> sizes;                    ///< ascending
  std::vector<bool> points;                      ///< of each: it is one of those given
  std::vector<bool> starts;                      ///< of each: some kernel has a block more than at one less
  std::vector<std::vector<PredictedTime>> times; ///< of each kernel, of each size; infinite: not known

  /// What a choice counts with: a time, and by how much times like it are off.
  double cost(size_t kernel, size_t place) const {
    const PredictedTime& t = times[kernel][place];
    return t.seconds * (1 + t.error);
  }
};

/// `points`: ascending. Between neighbours at most StepTimes::kFarthest apart the steps are added of the
/// kernels that may be near the best there, and what else was measured there of one.
StepTable step_table(const std::vector<StepTimes>& kernels, const std::vector<int64_t>& points);

/// A place of the table between two points that stands for sizes around it.
struct StepDemand {
  size_t place = 0;
  double share = 0; ///< of the logarithm of the distance between the points
};

/// Between two points sizes at which one kernel stays the best, up to 2 %, are one demand: where that matters
/// most, which is where the second one is farthest behind. At most `most`, those that matter most.
std::vector<StepDemand> step_demands(const StepTable&, size_t most);

} // namespace deepgen
