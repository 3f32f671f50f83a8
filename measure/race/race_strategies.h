// Which arms of a race run in which rounds.
#pragma once

#include "measure/race/race.h"

#include <functional>
#include <vector>

namespace deepgen::race {

class Track;
using Strategy = std::function<void(Track&, const std::vector<size_t>& entered, const RaceOptions&)>;

/// Returns the anchor and those that stayed to the end.
std::vector<size_t> run_halving(Track&, std::vector<size_t> arms, const RaceOptions&);
/// `planned`: rounds of this part of the race and of those before it.
void run_full(Track&, std::vector<size_t> arms, const RaceOptions&, int fewest, int most, double deadline,
              int planned);
void run_phases(Track&, const std::vector<size_t>& entered, const std::vector<Phase>&, const RaceOptions&);

} // namespace deepgen::race
