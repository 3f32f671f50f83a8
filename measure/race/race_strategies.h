// Which arms of a race run in which rounds.
#pragma once

#include "measure/race/race.h"

#include <functional>
#include <limits>
#include <vector>

namespace deepgen::race {

class Track;
using Strategy = std::function<void(Track&, const std::vector<size_t>& entered)>;

/// Runs `strategy` in workers until one gets through; arms that kill one stay out of the next. Those from
/// `made` on are made by the strategy, if at all.
std::vector<ArmResult> run_race(const std::vector<Arm>& arms, const RaceOptions&, Progress&, const Strategy&,
                                size_t made = std::numeric_limits<size_t>::max());

/// Returns the anchor and those that stayed to the end.
std::vector<size_t> run_halving(Track&, std::vector<size_t> arms, const RaceOptions&);
/// `planned`: rounds of this part of the race and of those before it.
void run_full(Track&, std::vector<size_t> arms, const RaceOptions&, int fewest, int most, double deadline,
              int planned);
void run_phases(Track&, const std::vector<size_t>& entered, const std::vector<Phase>&, const RaceOptions&);

} // namespace deepgen::race
