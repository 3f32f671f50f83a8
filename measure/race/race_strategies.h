// Which arms of a race run in which rounds.
#pragma once

#include "measure/race/race.h"

#include <functional>
#include <vector>

namespace deepgen::race {

class Track;
using Strategy = std::function<void(Track&, const std::vector<size_t>& entered, const RaceOptions&)>;

/// The log of an arm's ratio to the anchor so far.
using LogRatio = std::function<double(size_t arm, size_t anchor)>;
/// Arms leave by `log_ratio`, which is asked for what it needs behind the first stage: that of all arms.
/// Without it, by the median of their rounds.
void run_halving(Track&, std::vector<size_t> arms, const RaceOptions&,
                 const std::function<LogRatio(const std::vector<size_t>& arms)>& behind_first = {});
/// `planned`: rounds of this part of the race and of those before it.
void run_full(Track&, std::vector<size_t> arms, const RaceOptions&, int fewest, int most, double deadline,
              int planned);
void run_phases(Track&, const std::vector<size_t>& entered, const std::vector<Phase>&, const RaceOptions&);

} // namespace deepgen::race
