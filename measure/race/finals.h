// The last rounds of a search: finalists, the anchor a second time, the vendor library and what else is timed
// for comparison, all interleaved; then, in a new process, the winner alone against the default and the
// vendor.
#pragma once

#include "base/kernel/kernel.h"
#include "base/kernel/regime.h"
#include "measure/race/race.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace deepgen {

constexpr int kFewestFinalRounds = 11;
constexpr int kFewestOfHoldout = 7;    ///< for an interval, where a call takes seconds
constexpr int kFewestSerialRounds = 5; ///< of finalists that two regimes leave alike

/// What runs in the finals on one kind of device.
struct Field {
  size_t finalists = 0; ///< the first one is the default, where that is good
  std::function<Arm(size_t finalist, const std::string& name)> arm; ///< an empty name: its own
  std::vector<Arm> vendor_arms;
  std::optional<Arm> read_arm; ///< for the memory's bandwidth
};

/// Of the finals in one regime.
struct FinalsPart {
  std::vector<ArmResult> all, finalists;
  ArmResult again;  ///< the anchor: what it differs from itself is noise
  ArmResult vendor; ///< the best of the vendor's arms
};
struct FinalsResult : FinalsPart {
  ArmResult read;
  size_t anchor = 0;                ///< among the finalists; their count when none could be timed
  std::optional<size_t> vendor_arm; ///< which was the best, in the mean where there are two regimes
  std::optional<FinalsPart> bursts; ///< of finals in both regimes, the same arms
};

/// As many rounds as the deadline has room for, but 11 at least. Where the anchor fails while it is timed,
/// all over again with the next finalist in its place. `least_noise`: Contest's. balanced: in both regimes.
FinalsResult run_finals(const Field&, const RaceOptions&, Progress&, double least_noise = 0,
                        TunedFor = TunedFor::sustained);

/// The chosen ones of the finals, timed together.
struct ChosenResult {
  std::vector<ArmResult> all;
  ArmResult anchor, again, winner; ///< `winner` is `anchor` where that won
  ArmResult vendor;
};
struct HoldoutResult : ChosenResult {
  std::map<Regime, ChosenResult> extra;
};

/// The chosen ones of the finals, against each other in a process of their own: here nothing is chosen any
/// more. Then in each of the regimes `extra`, some seconds for each, at most `extra_rounds`.
HoldoutResult run_holdout(const Field&, size_t anchor, size_t winner, std::optional<size_t> vendor_arm,
                          const std::vector<Regime>& extra, const RaceOptions&, Progress&,
                          int extra_rounds = 41);

} // namespace deepgen
