// Finals and hold-out of a problem with ranges: every finalist at every point and between them, the borders
// of the chosen ones by bisection, then the chosen ones once more.
#pragma once

#include "base/problem/points.h"
#include "base/search/record.h"
#include "measure/commands/sized_field.h"
#include "measure/process/progress.h"

#include <functional>

namespace deepgen {

struct RangedContest {
  Problem problem;
  std::string arch = "cpu"; ///< on GPUs sizes are denser
  TunePoints points;
  std::vector<Record> finalists; ///< of stage "final"
  std::vector<const Kernel*> kernels;
  bool has_default = true;               ///< the first one is it
  TunedFor regime = TunedFor::sustained; ///< as Contest's; balanced: the best of each point in bursts, too
  std::function<std::unique_ptr<SizedField>(const Sizes&, bool vendor)> field;
  RaceOptions options; ///< but the deadline
  double seconds = 20; ///< for all
  double least_noise = 0;
  double clean_enough = 0.5; ///< share of undisturbed samples without which nothing is decided
};

/// The environment holds "anchor", "tune_at", "borders", "points" (the hold-out), "vendor_name" and, where
/// the log is not stable, "unstable". `samples` gets all results.
RecordLog run_ranged_contest(const RangedContest&, Progress&, std::vector<ArmResult>& samples);

} // namespace deepgen
