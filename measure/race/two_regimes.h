// Races in two regimes: what has raced in one is timed in bursts, too, in the same worker and on the same
// operands. Bursts rest between samples, so that only the best of the first regime are timed in them.
#pragma once

#include "measure/race/race.h"
#include "measure/race/series.h"

namespace deepgen {

/// The second regime. Arm i is arm i of the first one; the first one's others have none.
struct Bursts {
  std::vector<Arm> arms;
  /// Of the arms from..to - 1 only the best `most` of the first regime are timed, and the anchor.
  std::vector<Cut> groups = {};
  int rounds = 3;      ///< of all
  int last_rounds = 0; ///< of finals_in_two(): of those that go on
  double seconds = 1;  ///< for all rounds, though there are two at least
};

/// `bursts` has as many results as Bursts::arms; those of arms that were not timed are empty.
struct InTwo {
  std::vector<ArmResult> first, bursts;
};

/// halving_race(), whose best 14 behind the first stage are timed in bursts, too: arms leave by both.
InTwo halving_in_two(const std::vector<Arm>& arms, const Bursts&, const RaceOptions&, Progress&);
/// full_race() without cuts, and then the bursts.
InTwo full_in_two(const std::vector<Arm>& arms, const Bursts&, int fewest, const RaceOptions&, Progress&);
Race plan_full_in_two(const std::vector<Arm>& arms, const Bursts&, int fewest, const RaceOptions&);
/// The results of such a race, of so many arms in the first regime.
InTwo in_two(const std::vector<ArmResult>&, size_t first);
/// Finals: the first rounds in either regime, cuts, and the last rounds in either. An arm is left out where
/// another of its cut is faster in both, by more than `behind` in the mean of both.
InTwo finals_in_two(const std::vector<Arm>& arms, const Bursts&, int fewest, const RaceOptions&, Progress&);

} // namespace deepgen
