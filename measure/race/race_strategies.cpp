#include "measure/race/race_strategies.h"

#include "measure/race/race_track.h"
#include "measure/race/statistics.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace deepgen::race {
namespace {

constexpr double kTooSlow = 3;

/// The best `keep` by their ratio so far; the anchor stays, and does not count.
std::vector<size_t> best_arms(const LogRatio& log_ratio, const std::vector<size_t>& arms, size_t keep) {
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t arm : arms)
    if (arm != arms.front()) ranked.emplace_back(log_ratio(arm, arms.front()), arm);
  std::sort(ranked.begin(), ranked.end());
  std::vector<size_t> kept = {arms.front()};
  for (size_t i = 0; i < std::min(keep, ranked.size()); ++i) kept.push_back(ranked[i].second);
  return kept;
}

std::vector<size_t> drop_slow(Track& track, const std::vector<size_t>& arms) {
  double fastest = track.first_seconds(arms.front());
  for (size_t arm : arms) fastest = std::min(fastest, track.first_seconds(arm));
  std::vector<size_t> kept;
  for (size_t arm : arms)
    if (arm == arms.front() || track.first_seconds(arm) <= kTooSlow * fastest)
      kept.push_back(arm);
    else
      track.drop(arm);
  return kept;
}

std::vector<size_t> drop_hopeless(Track& track, const std::vector<size_t>& arms, const Cut& hopeless) {
  std::vector<size_t> kept;
  for (size_t arm : arms)
    if (arm != arms.front() && arm >= hopeless.from && arm < hopeless.to &&
        track.first_seconds(arm) > hopeless.behind * track.first_seconds(arms.front()))
      track.drop(arm);
    else
      kept.push_back(arm);
  return kept;
}

/// What the cuts leave, the anchor and arms in no cut with it. An arm is left out for what its rounds say
/// beside those of the fastest alone: the order of medians of so few rounds would leave out the best about as
/// often as any other near it.
std::vector<size_t> after_cuts(const Track& track, const std::vector<size_t>& arms, const RaceOptions& o) {
  std::set<size_t> out;
  for (const Cut& cut : o.cuts) {
    std::vector<std::pair<double, size_t>> ranked;
    for (size_t arm : arms)
      if (arm >= cut.from && arm < cut.to && arm != arms.front())
        ranked.emplace_back(median(log_ratios(track.samples(arm), track.samples(arms.front()))), arm);
    std::sort(ranked.begin(), ranked.end());
    for (size_t i = 1; i < ranked.size(); ++i) {
      const auto pairs = log_ratios(track.samples(ranked[i].second), track.samples(ranked.front().second));
      if (i >= cut.most || bootstrap_median(pairs, o.seed).low > cut.behind) out.insert(ranked[i].second);
    }
  }
  std::vector<size_t> kept;
  for (size_t arm : arms)
    if (!out.count(arm)) kept.push_back(arm);
  return kept;
}

} // namespace

void run_halving(Track& track, std::vector<size_t> arms, const RaceOptions& o,
                 const std::function<LogRatio(const std::vector<size_t>&)>& behind_first) {
  constexpr double kShares[] = {0.4, 0.5, 1.0}; // of the time left
  constexpr size_t kFewest = 4, kFinalists = 8;
  LogRatio log_ratio = [&](size_t arm, size_t anchor) {
    return median(log_ratios(track.samples(arm), track.samples(anchor)));
  };
  arms = drop_slow(track, arms);
  for (size_t stage = 0; stage < std::size(kShares); ++stage) {
    if (stage > 0) {
      if (stage == 1 && behind_first) log_ratio = behind_first(arms);
      const size_t third = std::max(kFewest, (arms.size() + 1) / 3);
      arms = best_arms(log_ratio, arms, stage == 2 ? std::min(third, kFinalists) : third);
      if (track.left() <= 0) return;
    }
    const double affordable = kShares[stage] * track.left() / std::max(track.round_seconds(arms), 1e-9);
    const int rounds = int(std::clamp(affordable, 1.0, double(o.halving_rounds[stage])));
    for (int kept = 0, run = 0; kept < rounds && run < 2 * rounds && (run == 0 || track.left() > 0); ++run)
      kept += track.run_in_parts(arms);
  }
}

void run_full(Track& track, std::vector<size_t> arms, const RaceOptions& o, int fewest, int most,
              double deadline, int planned) {
  arms = drop_hopeless(track, arms, o.hopeless);
  bool cut = o.cuts.empty();
  for (int kept = 0;
       kept < most && (kept < fewest || deadline - wall_seconds() > track.round_seconds(arms));) {
    const bool counts = track.run_round(arms);
    kept += counts;
    if (track.hopeless(planned)) return;
    if (cut || !counts || kept != std::min(most, o.heat_rounds)) continue;
    cut = true;
    const std::vector<size_t> chosen = after_cuts(track, arms, o);
    if (chosen.size() == arms.size() ||
        deadline - wall_seconds() < o.fewest_last * track.round_seconds(chosen))
      continue;
    arms = chosen, kept = 0, fewest = std::min(most, o.fewest_last);
    most = int(
        std::min(double(most), std::max(o.last_seconds / track.round_seconds(arms), double(o.enough_last))));
    track.begin_last(arms);
  }
}

void run_phases(Track& track, const std::vector<size_t>& entered, const std::vector<Phase>& phases,
                const RaceOptions& o) {
  int planned = 0;
  for (const Phase& phase : phases) {
    std::vector<size_t> arms;
    for (size_t arm : entered)
      if (arm >= phase.from && arm < phase.to) arms.push_back(arm);
    if (arms.empty() || track.hopeless(planned)) continue;
    const double deadline = planned ? wall_seconds() + phase.seconds : o.deadline;
    planned += phase.most;
    run_full(track, arms, o, phase.fewest, phase.most, deadline, planned);
  }
}

} // namespace deepgen::race
