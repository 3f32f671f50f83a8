// Races one after the other, each with the results of a single one. A worker's start takes longer than many a
// race: on an H200 0.4 s, of a context and what is loaded into it. So races of samplers share a worker, as
// long as it lives.
#pragma once

#include "measure/race/race.h"
#include "measure/race/race_strategies.h"

#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace deepgen {

/// A race that has not begun.
struct Race {
  std::shared_ptr<void> field; ///< what the arms run on, freed before the next race begins
  std::vector<Arm> arms;
  RaceOptions options;
  double seconds = 0; ///< from its own beginning to its deadline; 0: the deadline is that of the options
  race::Strategy strategy;
  size_t made = std::numeric_limits<size_t>::max(); ///< arms from here on are made by the strategy, if at all
};

/// full_race() and halving_race(), to be run.
Race plan_full(std::vector<Arm> arms, int fewest, int most, const RaceOptions&);
Race plan_halving(std::vector<Arm> arms, const RaceOptions&);

struct Series {
  size_t count = 0;
  /// The i-th race. Asked for before its worker starts: with the first race of a worker all behind it, which
  /// are as they would be if none of their arms failed. Where one does, they are asked for again.
  std::function<Race(size_t i)> race;
  /// What came of it, in the order of the races. False: no further ones.
  std::function<bool(size_t i, const std::vector<ArmResult>&)> done;
};

/// Returns how many races were done. Where an arm crashes or hangs, or the device is lost, its race goes on
/// without it in another worker, and the races behind it in a further one. Races of calls have a worker each:
/// it is confined. `end` of the options is the same in all races; those that it comes before have no samples.
size_t run_series(const Series&, Progress&);

std::vector<ArmResult> run_alone(const Race&, Progress&);

} // namespace deepgen
