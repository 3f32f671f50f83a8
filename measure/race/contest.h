// Contest: finals and hold-out of one problem, from what can be timed to a log with which the search ends.
#pragma once

#include "base/search/record.h"
#include "measure/race/finals.h"

namespace deepgen {

struct Contest {
  std::vector<Record> finalists; ///< of stage "final", in the order of the field
  bool has_default = true;       ///< the first one is it
  /// What is timed, on operands of its own: called for the finals, and once more for the hold-out.
  std::function<Field()> field;
  std::string vendor, vendor_note; ///< its name, empty when there is none; how its time is to be read
  RaceOptions options;             ///< but the deadline
  double settle_again = 0;         ///< RaceOptions::settle_seconds of the hold-out
  double seconds = 20;             ///< for both together
  /// What is tuned for. sustained and burst: one regime, that of the field's arms. balanced: finals and
  /// hold-out are in bursts, too, and both decide.
  TunedFor regime = TunedFor::sustained;
  std::vector<Regime>
      extra; ///< in which the hold-out times the chosen ones, too, without a say in what is chosen
  int extra_rounds = 41;
  double least_noise = 0;    ///< what the default differs from itself may not tell all
  double clean_enough = 0.5; ///< share of undisturbed samples without which nothing is decided
};

struct ContestResult {
  RecordLog log; ///< its environment holds only "anchor" and what is said of the two races
  FinalsResult finals;
  std::vector<ArmResult> samples; ///< of both, for what else the environment tells
};

/// Never throws for what an arm does. The log is not stable, and its environment says why in "unstable", when
/// too few samples were undisturbed, too many rounds were dropped, the noise is unknown, or the chosen ones
/// could not be timed again.
ContestResult run_contest(const Contest&, Progress&);

/// Whether the clocks of two arms allow to compare their times. "ambiguous": they differ by more than 1 %
/// without a power limit that would explain it, and cycles do not say the same as times.
struct ClockCheck {
  double megahertz = 0, other = 0; ///< medians; 0: unknown
  double capped = 0;               ///< share of samples at the power limit
  enum Kind { agree, power_limited, ambiguous } kind = agree;
};
ClockCheck check_clocks(const ArmResult& arm, const ArmResult& other, double noise, uint64_t seed);
/// verdict() of base/search/decide.h, with what the clocks say: also "power-limited win" and "power-limited
/// loss".
std::string verdict_of(const ArmResult& arm, const ArmResult& other, double noise, uint64_t seed);

} // namespace deepgen
