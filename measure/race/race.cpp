#include "measure/race/race.h"

#include "base/json/json_fwd.h"
#include "measure/process/worker.h"
#include "measure/race/race_messages.h"
#include "measure/race/race_strategies.h"
#include "measure/race/race_track.h"
#include "measure/race/slices.h"
#include "measure/race/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

namespace deepgen {
namespace {

using race::Strategy;
using race::Track;

/// The best ratio so far, for people.
std::string standing(const std::vector<ArmResult>& results, size_t anchor, int round) {
  double best = 1;
  for (const ArmResult& r : results)
    if (r.timed() && !r.dropped && results[anchor].timed())
      best = std::min(best, std::exp(median(log_ratios(r, results[anchor]))));
  char text[80];
  std::snprintf(text, sizeof text, "timing round %d, best %.3f of the default's time", round + 1, best);
  return text;
}

/// What the parent has of one worker's messages.
class Score {
public:
  Score(std::vector<ArmResult>& results, size_t anchor, Spent& spent, Progress& progress)
      : results_(results), anchor_(anchor), spent_(spent), progress_(progress) {}

  void take(const Json& json) {
    std::visit([&](const auto& message) { hear(message); }, race::message_from(json, results_.size()));
  }
  const std::string& why_failed() const { return why_failed_; }
  double lap() { return lap_.seconds(); }

private:
  void hear(const race::Settled& m) {
    spent_.settling += m.seconds;
    spent_.making += lap_.seconds() - m.seconds;
  }
  void hear(const race::Sampled& m) {
    results_[m.arm].rounds[m.round] = m.sample;
    if (std::exchange(round_, m.round) != m.round) progress_.live(standing(results_, anchor_, m.round));
  }
  void hear(const race::LeftOut& m) { results_[m.arm].dropped = true; }
  void hear(const race::RoundLost& m) {
    for (ArmResult& r : results_)
      if (auto at = r.rounds.find(m.round); at != r.rounds.end()) at->second.throttled = true;
  }
  void hear(const race::KeptFrom& m) { results_[m.arm].last_from = m.round; }
  void hear(const race::Failed& m) { why_failed_ = m.why; }

  std::vector<ArmResult>& results_;
  size_t anchor_;
  Spent& spent_;
  Progress& progress_;
  std::string why_failed_;
  int round_ = -1;
  Lap lap_;
};

/// A message that is none is a crash of the arm that ran, like any other that a broken worker comes to.
WorkerEnd run_once(const std::vector<Arm>& arms, const std::vector<size_t>& entered,
                   const RaceOptions& options, const Running& running, const Strategy& strategy, Score& score,
                   size_t made) {
  std::vector<size_t> at_first = entered;
  std::erase_if(at_first, [&](size_t arm) { return arm >= made; });
  try {
    return run_worker(
        [&](Channel& channel) {
          Track track(arms, at_first, options, channel, running);
          strategy(track, entered);
        },
        [&](const Json& json) { score.take(json); }, options.end);
  } catch (const ForeignMessage& e) {
    return {WorkerEnd::crash, e.what(), "", false, 0};
  }
}

} // namespace

std::vector<ArmResult> race::run_race(const std::vector<Arm>& arms, const RaceOptions& options,
                                      Progress& progress, const Strategy& strategy, size_t made) {
  std::vector<ArmResult> results(arms.size());
  std::vector<size_t> entered(arms.size());
  std::iota(entered.begin(), entered.end(), size_t(0));
  Spent none, &spent = options.spent ? *options.spent : none;
  const Running running;
  bool spared =
      false; ///< once a race is run again with the arm in which its worker was killed from elsewhere
  while (!entered.empty()) {
    running.set(entered.front());
    Score score(results, entered.front(), spent, progress);
    const WorkerEnd end = run_once(arms, entered, options, running, strategy, score, made);
    spent.timing += score.lap();
    if (end.kind == WorkerEnd::done || end.kind == WorkerEnd::late) break;
    for (size_t arm : entered) results[arm] = {};
    if (end.killed && std::exchange(spared, true)) throw killed_twice(end);
    if (end.killed) continue;
    const size_t current = std::min(running.get(), arms.size() - 1);
    results[current].failure = end.kind == WorkerEnd::timeout ? "timeout" : "crash";
    results[current].detail = score.why_failed().empty() ? end.detail : score.why_failed();
    std::erase(entered, current);
  }
  return results;
}

std::vector<ArmResult> halving_race(const std::vector<Arm>& arms, const RaceOptions& options,
                                    Progress& progress) {
  return race::run_race(arms, options, progress, [&](Track& track, const std::vector<size_t>& entered) {
    race::run_halving(track, entered, options);
  });
}

std::vector<ArmResult> full_race(const std::vector<Arm>& arms, int fewest, int most,
                                 const RaceOptions& options, Progress& progress) {
  return race::run_race(arms, options, progress, [&](Track& track, const std::vector<size_t>& entered) {
    race::run_full(track, entered, options, fewest, most, options.deadline, most);
  });
}

std::vector<ArmResult> phased_race(const std::vector<Arm>& arms, const std::vector<Phase>& phases,
                                   const RaceOptions& options, Progress& progress) {
  return race::run_race(arms, options, progress, [&](Track& track, const std::vector<size_t>& entered) {
    race::run_phases(track, entered, phases, options);
  });
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
