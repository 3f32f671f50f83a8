// Times arms against each other: every round runs each arm once in a random order, so that drift hits all
// alike.
#pragma once

#include "base/search/record.h"
#include "measure/process/progress.h"
#include "measure/process/stopwatch.h"
#include "measure/race/spent.h"
#include "measure/race/statistics.h"

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace deepgen {

/// Takes one sample, of `calls` calls, by itself: such as the replay of a graph between two events.
struct Sampler {
  std::function<Sample()> take;
  int64_t calls = 1;
  double pause = 0; ///< seconds that it rests before each sample
};

/// What is around a call while it is timed. Sustained: calls follow each other on a device that is hot, and
/// overlap where their kernels can. Serial: the same, but every launch waits for the end of the one before.
/// Bursts: a few calls after a rest.
enum class Regime { sustained, serial, bursts };
std::string to_string(Regime);
/// "sustained", "serial" or "bursts".
Regime regime_of(const std::string& name);

/// One thing to time. Arm 0 is the anchor, against which ratios are taken. Has one of `make` and
/// `make_sampler`, called in the worker; hence whatever they load cannot hurt the parent.
struct Arm {
  std::string name;
  /// Returns the call to time: by this thread's CPU time, or with `start` by wall time.
  std::function<std::function<void()>()> make;
  /// An exception from it, or from its samples, is the arm's failure: "crash".
  std::function<Sampler()> make_sampler = {};
  /// The same in any regime; empty for an arm that knows the first one alone.
  std::function<Sampler(Regime)> make_in_regime = {};
  int threads = 1; ///< that a call takes
  /// Of calls that take several threads: starts them, in the worker, before that is confined. All arms of a
  /// race have it, or none; some may start the same threads.
  std::function<void()> start = {};
  /// Seconds, at most, that all others wait behind its slices: until threads sleep that go on spinning for a
  /// while.
  double rest = 0;
};

/// The same, timed in a regime; must know how.
Arm in_regime(const Arm&, Regime);

/// What an arm did: its sample in each round that it took part in. Of a dropped round all samples are
/// `throttled`.
struct ArmResult {
  std::map<int, Sample> rounds;
  bool dropped = false; ///< too slow to go on after its first sample
  int last_from =
      -1; ///< first of the rounds that a full race's cuts have left to the fastest; -1: it was not in these
  std::string failure, detail; ///< "crash" or "timeout" while being timed
  bool timed() const { return failure.empty() && !rounds.empty(); }
};

/// Of the arms from..to - 1 go on: the anchor, and of the others all that may be as fast as the fastest of
/// them. That is unless the 95 % interval of the ratio to it (log) lies beyond `behind`; an arm as fast as it
/// is left out in one race of 40 at most. What then runs is less, and more alike, so that a device at its
/// power limit is the same for all.
struct Cut {
  size_t from = 0, to = 0;
  double behind = 0;
  size_t most = std::numeric_limits<size_t>::max(); ///< go on at most, where there may be dozens
};

struct RaceOptions {
  double sample_seconds = 0.003; ///< enough calls for this; short ones in slices of a sixteenth of it
  double deadline = 0;           ///< on the clock of wall_seconds(): no more rounds than the fewest
  /// On the same clock: no arm runs any more. What has been sampled counts.
  double end = std::numeric_limits<double>::infinity();
  double call_seconds = 10; ///< a call that takes longer hangs
  double start_seconds = 0; ///< more for the first arm: what all arms need is set up with it
  /// Called in the worker when all arms are made, before the first round, with the seconds that it may take.
  std::function<void(double limit)> settle;
  double settle_seconds = 0;
  double cool_seconds = 1; ///< pause after a round that was dropped, as a device throttled in it
  int warmup = 0;          ///< calls (or samples of a sampler) of each arm before its first sample
  int most_rounds = 60;    ///< of a full race
  int halving_rounds[3] = {3, 5, 9};
  int heat_rounds = 15, fewest_last = 21, enough_last = 31; ///< of a full race with cuts
  /// The sample with which an arm is made is that of its first round: where samples take long, and the state
  /// of the device says little.
  bool first_counts = false;
  std::vector<Cut> cuts = {}; ///< in a full race, after `heat_rounds`, where `fewest_last` more have time
  /// In a full race: arms that the first sample shows to take more than `behind` times as long as the anchor
  /// are dropped, as what they lose by needs no more rounds.
  Cut hopeless = {};
  /// Of the rounds after the cuts, as far as `enough_last` are not more.
  double last_seconds = std::numeric_limits<double>::infinity();
  uint64_t seed = 1;
  Spent* spent = nullptr; ///< where to add what the race took
};

/// A race of arms in bursts: rests take ten times as long as samples, so there are fewer of them.
void spare_rounds(RaceOptions&);

/// Successive halving in a worker process: 3 rounds for all, 5 for the better third (at least 4), 9 for the
/// best 8 of those; always with the anchor, which runs again after every 8 arms. Fewer where the deadline is
/// near, but at least one. Arms that the first sample shows to be 3 times slower than the fastest are
/// dropped. After a crash the race starts again without the culprit. A round in which the device throttled is
/// dropped as a whole and repeated, as long as not more than a fifth of them are.
std::vector<ArmResult> halving_race(const std::vector<Arm>& arms, const RaceOptions&, Progress&);

/// Every arm in every round: as many rounds as the deadline allows, from `fewest` to `most`; after cuts as
/// many again.
std::vector<ArmResult> full_race(const std::vector<Arm>& arms, int fewest, int most, const RaceOptions&,
                                 Progress&);

/// A part of a race: rounds of the arms from..to - 1 alone.
struct Phase {
  size_t from = 0, to = 0;
  int fewest = 0, most = 0;
  double seconds = 0; ///< from its own start on; of the first phase, the race's deadline instead
};
/// Full races of different arms, one after the other in one worker, on the same operands.
std::vector<ArmResult> phased_race(const std::vector<Arm>& arms, const std::vector<Phase>& phases,
                                   const RaceOptions&, Progress&);

/// The arm that ratios are taken against: the first one that could be timed; results.size() when none could.
size_t anchor_of(const std::vector<ArmResult>& results);
/// log(arm / anchor) of the rounds that have both, but not of dropped ones unless all are; only undisturbed
/// pairs where those are at least half and at least 3. Only of the last rounds, where a race's cuts have left
/// both.
std::vector<double> log_ratios(const ArmResult& arm, const ArmResult& anchor);
std::vector<double> log_ratios(const std::map<int, Sample>& arm, const std::map<int, Sample>& anchor,
                               int from_round = 0);
/// Whether cuts left others, but not this one.
bool was_cut(const ArmResult& arm, const ArmResult& anchor);
/// The ratio (log) of an arm that was cut, as if it had run to the end: to those that stayed while it ran,
/// and theirs to the anchor in the last rounds. Its own to the anchor compares with none of theirs, as a
/// machine is another one seconds later.
Interval ratio_by_way_of(const std::vector<const ArmResult*>& stayed, const ArmResult& arm,
                         const ArmResult& anchor, uint64_t seed);
/// Times of the arm's last rounds, ratios by log_ratios().
Timing summarize(const ArmResult& arm, const ArmResult& anchor, uint64_t seed);
/// Of samples that were not disturbed. An arm that was dropped has one that was not taken for its time.
double clean_share(const std::vector<ArmResult>& results);
/// Of all rounds.
double dropped_share(const std::vector<ArmResult>& results);
constexpr double kMostDropped = 0.2; ///< with more, a race decides nothing

} // namespace deepgen
