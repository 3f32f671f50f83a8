#include "measure/race/two_regimes.h"

#include "measure/race/race_track.h"
#include "measure/race/statistics.h"

#include <algorithm>
#include <set>

namespace deepgen {
namespace {

using race::Track;

/// Of a round, in bursts. Tiles that lose 2 % to others at the power limit have won 4 % at the full clock.
constexpr size_t kBestOfRound = 14;
constexpr double kHopeless = 0.7;                       ///< log of a ratio: twice as slow
constexpr int kFewestBursts = 2, kFewestLastBursts = 4; ///< rounds: enough for the noise together

/// The arms of one race in a worker.
class Two {
public:
  Two(Track& track, const std::vector<size_t>& entered, size_t count, const Bursts& bursts,
      const RaceOptions& o)
      : track_(track), count_(count), bursts_(bursts), options_(o), plain_(o) {
    plain_.cuts.clear();
    for (size_t arm : entered) arm < count ? first_.push_back(arm) : (void)open_.insert(arm);
  }

  const std::vector<size_t>& first() const { return first_; }

  void full(const std::vector<size_t>& arms, int fewest, int most, double deadline) {
    race::run_full(track_, arms, plain_, fewest, most, deadline, options_.most_rounds);
  }

  /// Makes the twins of `arms`, the anchor's first; empty where that cannot be timed, as no ratio is known
  /// without it.
  std::vector<size_t> make_twins(const std::vector<size_t>& arms) {
    std::vector<size_t> twins;
    for (size_t arm : arms) {
      const bool open = open_.count(arm + count_) != 0;
      if (!open && twins.empty()) return {};
      if (open) twins.push_back(arm + count_);
    }
    for (size_t twin : twins) track_.make_late(twin);
    return twins;
  }

  void rounds(const std::vector<size_t>& twins, int fewest, int most, double until) {
    if (twins.empty()) return;
    for (int run = 0, kept = 0; kept < most && run < 2 * most; ++run) {
      if (run >= fewest && wall_seconds() + track_.round_seconds(twins) > until) return;
      kept += track_.run_round(twins);
    }
  }

  /// The arms that are timed in bursts, too: of each group the best so far.
  std::vector<size_t> best() const {
    std::set<size_t> out;
    for (const Cut& group : bursts_.groups) {
      std::vector<std::pair<double, size_t>> ranked;
      for (size_t arm : first_)
        if (arm >= group.from && arm < group.to && arm != first_.front())
          ranked.emplace_back(ratio(arm, first_.front()), arm);
      std::sort(ranked.begin(), ranked.end());
      for (size_t i = group.most; i < ranked.size(); ++i) out.insert(ranked[i].second);
    }
    std::vector<size_t> kept;
    for (size_t arm : first_)
      if (!out.count(arm)) kept.push_back(arm);
    return kept;
  }

  /// Of a round's arms the anchor and the best so far.
  std::vector<size_t> best_of(const std::vector<size_t>& arms) const {
    std::vector<std::pair<double, size_t>> others;
    for (size_t arm : arms)
      if (arm != arms.front()) others.emplace_back(ratio(arm, arms.front()), arm);
    std::sort(others.begin(), others.end());
    std::vector<size_t> best = {arms.front()};
    for (const auto& [log_ratio, arm] : others)
      if (best.size() <= kBestOfRound && log_ratio < kHopeless) best.push_back(arm);
    return best;
  }

  /// By both regimes, as far as bursts are known; who is not known in them comes behind the others.
  double ratio_of_round(size_t arm, size_t anchor) const {
    const bool known = !pairs(arm + count_, anchor + count_).empty();
    return known ? mean_ratio(arm) : kHopeless + ratio(arm, anchor);
  }

  /// What the cuts leave, of the arms in no cut all. Arms of a cut that have no twin are out.
  std::vector<size_t> after_cuts(const std::vector<size_t>& twins) const {
    const std::set<size_t> timed(twins.begin(), twins.end());
    std::set<size_t> out;
    for (const Cut& cut : options_.cuts) {
      std::vector<std::pair<double, size_t>> ranked;
      for (size_t arm : first_) {
        if (arm < cut.from || arm >= cut.to || arm == first_.front()) continue;
        if (timed.count(arm + count_))
          ranked.emplace_back(mean_ratio(arm), arm);
        else
          out.insert(arm);
      }
      std::sort(ranked.begin(), ranked.end());
      for (size_t i = 1; i < ranked.size(); ++i)
        if (i >= cut.most || is_behind(ranked[i].second, ranked.front().second, cut.behind))
          out.insert(ranked[i].second);
    }
    std::vector<size_t> kept;
    for (size_t arm : first_)
      if (!out.count(arm)) kept.push_back(arm);
    return kept;
  }

  std::vector<size_t> twins_of(const std::vector<size_t>& arms, const std::vector<size_t>& twins) const {
    std::vector<size_t> kept;
    for (size_t twin : twins)
      if (std::find(arms.begin(), arms.end(), twin - count_) != arms.end()) kept.push_back(twin);
    return kept;
  }

private:
  Track& track_;
  size_t count_;
  const Bursts& bursts_;
  const RaceOptions& options_;
  RaceOptions plain_; ///< without cuts
  std::vector<size_t> first_;
  std::set<size_t> open_; ///< twins that may be made

  std::vector<double> pairs(size_t arm, size_t other) const {
    return log_ratios(track_.samples(arm), track_.samples(other));
  }
  double ratio(size_t arm, size_t other) const { return median(pairs(arm, other)); }
  double mean_ratio(size_t arm) const {
    return (ratio(arm, first_.front()) + ratio(arm + count_, first_.front() + count_)) / 2;
  }
  bool is_behind(size_t arm, size_t other, double behind) const {
    const double sustained = bootstrap_median(pairs(arm, other), options_.seed).low;
    const double bursts = bootstrap_median(pairs(arm + count_, other + count_), options_.seed).low;
    return sustained > 0 && bursts > 0 && (sustained + bursts) / 2 > behind;
  }
};

using Part = std::function<void(Track&, Two&, const Bursts&, const RaceOptions&)>;

Race plan_in_two(const std::vector<Arm>& arms, const Bursts& bursts, const RaceOptions& options,
                 const Part& part) {
  Race r;
  r.arms = arms, r.options = options, r.made = arms.size();
  r.arms.insert(r.arms.end(), bursts.arms.begin(), bursts.arms.end());
  r.strategy = [=, count = arms.size()](Track& track, const std::vector<size_t>& entered,
                                        const RaceOptions& o) {
    Two two(track, entered, count, bursts, o);
    if (!two.first().empty()) part(track, two, bursts, o);
  };
  return r;
}

} // namespace

InTwo in_two(const std::vector<ArmResult>& results, size_t first) {
  const auto middle = results.begin() + std::ptrdiff_t(first);
  return {{results.begin(), middle}, {middle, results.end()}};
}

Race plan_full_in_two(const std::vector<Arm>& arms, const Bursts& bursts, int fewest,
                      const RaceOptions& options) {
  return plan_in_two(arms, bursts, options,
                     [fewest](Track&, Two& two, const Bursts& b, const RaceOptions& o) {
                       two.full(two.first(), fewest, o.most_rounds, o.deadline - b.seconds);
                       const double until = wall_seconds() + b.seconds;
                       two.rounds(two.make_twins(two.best()), kFewestBursts, b.rounds, until);
                     });
}

InTwo halving_in_two(const std::vector<Arm>& arms, const Bursts& bursts, const RaceOptions& options,
                     Progress& progress) {
  const Part part = [](Track& track, Two& two, const Bursts& b, const RaceOptions& o) {
    race::run_halving(track, two.first(), o, [&](const std::vector<size_t>& arms) {
      const double until = wall_seconds() + b.seconds;
      if (track.left() > 0) two.rounds(two.make_twins(two.best_of(arms)), kFewestBursts, b.rounds, until);
      return [&](size_t arm, size_t anchor) { return two.ratio_of_round(arm, anchor); };
    });
  };
  return in_two(run_alone(plan_in_two(arms, bursts, options, part), progress), arms.size());
}

InTwo full_in_two(const std::vector<Arm>& arms, const Bursts& bursts, int fewest, const RaceOptions& options,
                  Progress& progress) {
  return in_two(run_alone(plan_full_in_two(arms, bursts, fewest, options), progress), arms.size());
}

InTwo finals_in_two(const std::vector<Arm>& arms, const Bursts& bursts, int fewest,
                    const RaceOptions& options, Progress& progress) {
  const Part part = [fewest](Track& track, Two& two, const Bursts& b, const RaceOptions& o) {
    const double deadline = o.deadline - b.seconds;
    const int most = o.most_rounds, heat = std::min(most, o.heat_rounds);
    two.full(two.first(), std::min(fewest, heat), heat, deadline);
    const double half = wall_seconds() + b.seconds / 2;
    std::vector<size_t> twins = two.make_twins(two.best());
    two.rounds(twins, kFewestBursts, b.rounds, half);
    std::vector<size_t> chosen = twins.empty() ? two.first() : two.after_cuts(twins);
    const double round = std::max(track.round_seconds(chosen), 1e-9);
    if (chosen.size() < two.first().size() && deadline - wall_seconds() >= o.fewest_last * round) {
      const double last = std::max(o.last_seconds / round, double(o.enough_last));
      track.begin_last(chosen);
      two.full(chosen, std::min(most, o.fewest_last), int(std::min(double(most), last)), deadline);
    } else {
      chosen = two.first();
      two.full(chosen, 0, most - heat, deadline);
    }
    two.rounds(two.twins_of(chosen, twins), kFewestLastBursts, b.last_rounds, wall_seconds() + b.seconds / 2);
  };
  return in_two(run_alone(plan_in_two(arms, bursts, options, part), progress), arms.size());
}

} // namespace deepgen
