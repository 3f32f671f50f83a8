#include "measure/race/race.h"

#include "measure/race/race_track.h"
#include "measure/race/series.h"

#include <algorithm>
#include <iterator>

namespace deepgen {

std::vector<ArmResult> halving_race(const std::vector<Arm>& arms, const RaceOptions& options,
                                    Progress& progress) {
  return run_alone(plan_halving(arms, options), progress);
}

std::vector<ArmResult> full_race(const std::vector<Arm>& arms, int fewest, int most,
                                 const RaceOptions& options, Progress& progress) {
  return run_alone(plan_full(arms, fewest, most, options), progress);
}

std::vector<ArmResult> phased_race(const std::vector<Arm>& arms, const std::vector<Phase>& phases,
                                   const RaceOptions& options, Progress& progress) {
  Race r;
  r.arms = arms, r.options = options;
  r.strategy = [&](race::Track& track, const std::vector<size_t>& entered, const RaceOptions& o) {
    race::run_phases(track, entered, phases, o);
  };
  return run_alone(r, progress);
}

std::string to_string(Regime r) {
  return r == Regime::bursts ? "bursts" : r == Regime::serial ? "serial" : "sustained";
}

Regime regime_of(const std::string& name) {
  return name == "bursts" ? Regime::bursts : name == "serial" ? Regime::serial : Regime::sustained;
}

Arm in_regime(const Arm& arm, Regime regime) {
  Arm a = arm;
  a.make_sampler = [make = arm.make_in_regime, regime] { return make(regime); };
  return a;
}

void spare_rounds(RaceOptions& o) {
  constexpr int kHalving[] = {1, 2, 3}, kHeat = 5, kFewestLast = 7, kEnoughLast = 9, kMost = 15;
  std::copy(std::begin(kHalving), std::end(kHalving), o.halving_rounds);
  o.heat_rounds = kHeat, o.fewest_last = kFewestLast, o.enough_last = kEnoughLast;
  o.most_rounds = std::min(o.most_rounds, kMost);
}

} // namespace deepgen
