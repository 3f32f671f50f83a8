#include "measure/race/race.h"

#include "base/json/json.h"
#include "measure/process/device_error.h"
#include "measure/process/worker.h"
#include "measure/race/slices.h"
#include "measure/race/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

namespace deepgen {
namespace {

constexpr double kTooSlow = 3;
constexpr int kRetries = 3; ///< of a disturbed sample, when it is a short one
constexpr double kShort = 0.05;
constexpr double kSlack = 20, kSettleSlack = 10;
constexpr int kSlices = 16;
constexpr int kRoundsOfHeat = 15, kFewestOfLast = 21, kEnoughOfLast = 31;
constexpr double kTick = 0.011, kMostStolen = 0.01;

using Samples = std::vector<std::map<int, Sample>>;

/// Lives in the worker.
class Track {
public:
  Track(const std::vector<Arm>& arms, const std::vector<size_t>& entered, const RaceOptions& options,
        Channel& channel, const Running& running)
      : options_(options), channel_(channel), running_(running), random_(options.seed),
        runners_(arms.size()) {
    Lap lap;
    confine(arms, entered);
    for (size_t arm : entered) {
      announce(arm, options_.call_seconds + (arm == entered.front() ? options_.start_seconds : 0));
      if (arms[arm].make_sampler) {
        guarded(arm, [&] {
          runners_[arm].sampler = arms[arm].make_sampler();
          runners_[arm].calls = runners_[arm].sampler.calls;
          warm_up(arm, [&] { runners_[arm].sampler.take(); });
          runners_[arm].seconds = runners_[arm].sampler.take().seconds;
        });
        continue;
      }
      runners_[arm].call = arms[arm].make();
      warm_up(arm, runners_[arm].call);
      calibrate(arm);
    }
    lap.seconds();
    if (options_.settle && !entered.empty()) {
      announce(entered.front(), options_.call_seconds + kSettleSlack * options_.settle_seconds);
      guarded(entered.front(), [&] { options_.settle(options_.settle_seconds); });
    }
    channel_.send({{"settling", lap.seconds()}});
  }

  double round_seconds(const std::vector<size_t>& arms) const {
    double sum = 0;
    for (size_t arm : arms) sum += runners_[arm].sample_seconds();
    return sum * slices_of(arms);
  }
  double first_seconds(size_t arm) const { return runners_[arm].seconds; }
  const std::map<int, Sample>& samples(size_t arm) const { return runners_[arm].rounds; }
  double left() const { return options_.deadline - wall_seconds(); }

  void drop(size_t arm) {
    record(arm, 0, runners_[arm].early.value_or(Sample{runners_[arm].seconds, false}));
    channel_.send({{"arm", arm}, {"dropped", true}});
  }

  /// Returns whether it counts.
  bool run_round(std::vector<size_t> arms) {
    shuffle(arms, 0);
    std::vector<size_t> open;
    for (size_t arm : arms)
      if (const std::optional<Sample> early = std::exchange(runners_[arm].early, std::nullopt))
        record(arm, round_, *early);
      else
        open.push_back(arm);
    if (slices_of(open) > 1)
      run_slices(open);
    else
      for (size_t arm : open) record(arm, round_, sample(arm));
    bool throttled = false;
    for (size_t arm : arms) throttled |= runners_[arm].rounds[round_].throttled;
    if (throttled) drop_round(arms);
    ++round_;
    return !throttled;
  }

  /// A round of many arms, as several of few, each with the anchor, arms.front(): so an arm and the anchor
  /// that it is compared with are close in time, while clocks still change. Returns whether all count.
  bool run_in_parts(std::vector<size_t> arms) {
    constexpr size_t kPart = 8;
    shuffle(arms, 1);
    const size_t others = arms.size() - 1, parts = std::max<size_t>(1, (others + kPart - 1) / kPart);
    bool counts = true;
    for (size_t part = 0; part < parts; ++part) {
      std::vector<size_t> few = {arms.front()};
      for (size_t i = 1 + others * part / parts; i < 1 + others * (part + 1) / parts; ++i)
        few.push_back(arms[i]);
      counts &= run_round(few);
    }
    return counts;
  }

  /// From here on these arms run by themselves.
  void begin_last(const std::vector<size_t>& arms) {
    for (size_t arm : arms) channel_.send({{"arm", arm}, {"last_from", round_}});
  }

  /// Whether so many rounds were dropped that `planned` others would decide nothing either.
  bool hopeless(int planned) const { return dropped_ > kMostDropped * double(planned) + 1; }

private:
  /// Samplers are of GPUs, whose drivers cannot live in a sandbox.
  void confine(const std::vector<Arm>& arms, const std::vector<size_t>& entered) {
    if (std::none_of(entered.begin(), entered.end(),
                     [&](size_t arm) { return bool(arms[arm].make_sampler); }))
      channel_.confine({0, sandbox::enough_seconds(left())});
  }

  void shuffle(std::vector<size_t>& arms, size_t from) {
    for (size_t i = arms.size(); i > from + 1; --i)
      std::swap(arms[i - 1], arms[from + random_() % (i - from)]);
  }

  struct Runner {
    std::function<void()> call;
    Sampler sampler;             ///< instead of `call`
    double seconds = 0;          ///< of one call
    int64_t calls = 1;           ///< in a sample, or in a slice of it
    std::optional<Sample> early; ///< taken before the first round, which has it then
    std::map<int, Sample> rounds;
    double sample_seconds() const {
      return seconds * double(calls + !sampler.take) + sampler.pause;
    } ///< a call warms up
  };

  /// Of the fastest arm's sample; all arms of a round have as many.
  int slices_of(const std::vector<size_t>& arms) const {
    int most = 1;
    for (size_t arm : arms) {
      const Runner& r = runners_[arm];
      if (r.sampler.take) return 1;
      most = std::max(
          most, int(std::min(double(kSlices), options_.sample_seconds / (r.seconds * double(r.calls)))));
    }
    return most;
  }

  /// One sample of each, in slices that take turns.
  void run_slices(std::vector<size_t> arms) {
    const int count = slices_of(arms);
    announce(arms.front(), std::max(options_.call_seconds, kSlack * round_seconds(arms)));
    std::vector<std::vector<Sample>> slices(runners_.size());
    const double start = wall_seconds(), stolen = watch_.stolen();
    for (int i = 0; i < count; ++i) {
      shuffle(arms, 0);
      for (size_t arm : arms) {
        const Runner& r = runners_[arm];
        running_.set(arm);
        r.call(); // its caches are its own again
        slices[arm].push_back(watch_.time(r.call, r.calls, false));
      }
    }
    const bool robbed = watch_.stolen() - stolen > kTick + kMostStolen * (wall_seconds() - start);
    for (size_t arm : arms) {
      Sample s = sample_of(slices[arm]);
      s.clean &= !robbed;
      record(arm, round_, s);
    }
  }

  void warm_up(size_t arm, const std::function<void()>& call) {
    for (int i = 0; i < options_.warmup && left() > 0; ++i) {
      announce(arm, options_.call_seconds); // each may take as long as one alone
      call();
    }
  }

  /// Finds how many calls fill a sample; the first call warms up. Where one call takes far longer than a
  /// sample, it is the arm's sample of the first round already: repeating it would use up the budget.
  void calibrate(size_t arm) {
    Runner& r = runners_[arm];
    constexpr double kLong = 10;
    const Sample first = watch_.time(r.call, 1);
    r.seconds = first.seconds;
    if (first.seconds > kLong * options_.sample_seconds) {
      r.early = first;
      return;
    }
    const auto long_enough = [&] {
      r.seconds = std::min(r.seconds, watch_.time(r.call, r.calls).seconds);
      return r.seconds * double(r.calls) >= options_.sample_seconds / 8 || r.calls > (1 << 24);
    };
    // A second look at short ones: one that was disturbed would seem to take many times as long, and be
    // dropped.
    for (r.calls = 1; !(long_enough() && (r.seconds > options_.sample_seconds || long_enough()));)
      r.calls *= 4;
    r.seconds = std::max(r.seconds, 1e-10);
    r.calls = std::max<int64_t>(1, int64_t(std::ceil(options_.sample_seconds / kSlices / r.seconds)));
  }

  Sample sample(size_t arm) {
    Runner& r = runners_[arm];
    announce(arm, std::max(options_.call_seconds, kSlack * r.sample_seconds()));
    if (r.sampler.take) {
      Sample one;
      guarded(arm, [&] { one = r.sampler.take(); });
      return one;
    }
    // A call that takes long enough warms its own caches.
    const bool warm = r.seconds < options_.sample_seconds;
    const int retries = r.sample_seconds() < kShort ? kRetries : 1;
    Sample best;
    for (int attempt = 0; attempt <= retries; ++attempt) {
      if (warm) r.call();
      const Sample one = watch_.time(r.call, r.calls);
      if (attempt == 0 || one.clean || one.seconds < best.seconds) best = one;
      if (one.clean || left() < 0) break;
    }
    return best;
  }

  /// A sampler's exception ends this process, whose device may be lost, after telling why.
  void guarded(size_t arm, const std::function<void()>& action) {
    try {
      action();
    } catch (const HostFault&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      if (const auto* of_device = dynamic_cast<const DeviceError*>(&e)) of_device->check_host();
      channel_.send({{"arm", arm}, {"failed", e.what()}});
      std::_Exit(0);
    }
  }

  void announce(size_t arm, double limit) {
    running_.set(arm);
    channel_.step("timing", limit);
  }

  void drop_round(const std::vector<size_t>& arms) {
    ++dropped_;
    for (size_t arm : arms) runners_[arm].rounds[round_].throttled = true;
    announce(arms.front(), options_.call_seconds + options_.cool_seconds);
    channel_.send({{"dropped_round", round_}});
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.cool_seconds));
  }

  void record(size_t arm, int round, const Sample& s) {
    runners_[arm].rounds[round] = s;
    channel_.send({{"arm", arm},
                   {"round", round},
                   {"seconds", s.seconds},
                   {"clean", s.clean},
                   {"megahertz", s.megahertz},
                   {"throttled", s.throttled},
                   {"capped", s.capped}});
  }

  const RaceOptions& options_;
  Channel& channel_;
  const Running& running_;
  Stopwatch watch_;
  std::mt19937_64 random_;
  std::vector<Runner> runners_;
  int round_ = 0, dropped_ = 0;
};

/// The best `keep` by their ratio so far; the anchor stays, and does not count.
std::vector<size_t> best_arms(const Track& track, const std::vector<size_t>& arms, size_t keep) {
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t arm : arms)
    if (arm != arms.front())
      ranked.emplace_back(median(log_ratios(track.samples(arm), track.samples(arms.front()))), arm);
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

void run_halving(Track& track, std::vector<size_t> arms) {
  struct Stage {
    int rounds;
    double share; ///< of the time left
  };
  constexpr Stage kStages[] = {{3, 0.4}, {5, 0.5}, {9, 1.0}};
  constexpr size_t kFewest = 4, kFinalists = 8;
  arms = drop_slow(track, arms);
  for (size_t stage = 0; stage < std::size(kStages); ++stage) {
    if (stage > 0) {
      const size_t third = std::max(kFewest, (arms.size() + 1) / 3);
      arms = best_arms(track, arms, stage == 2 ? std::min(third, kFinalists) : third);
      if (track.left() <= 0) return;
    }
    const double affordable = kStages[stage].share * track.left() / std::max(track.round_seconds(arms), 1e-9);
    const int rounds = int(std::clamp(affordable, 1.0, double(kStages[stage].rounds)));
    for (int kept = 0, run = 0; kept < rounds && run < 2 * rounds && (run == 0 || track.left() > 0); ++run)
      kept += track.run_in_parts(arms);
  }
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

/// `planned`: rounds of this part of the race and of those before it.
void run_full(Track& track, std::vector<size_t> arms, const RaceOptions& o, int fewest, int most,
              double deadline, int planned) {
  bool cut = o.cuts.empty();
  for (int kept = 0;
       kept < most && (kept < fewest || deadline - wall_seconds() > track.round_seconds(arms));) {
    const bool counts = track.run_round(arms);
    kept += counts;
    if (track.hopeless(planned)) return;
    if (cut || !counts || kept != std::min(most, kRoundsOfHeat)) continue;
    cut = true;
    const std::vector<size_t> chosen = after_cuts(track, arms, o);
    if (chosen.size() == arms.size() ||
        deadline - wall_seconds() < kFewestOfLast * track.round_seconds(chosen))
      continue;
    arms = chosen, kept = 0, fewest = std::min(most, kFewestOfLast);
    most = int(
        std::min(double(most), std::max(o.last_seconds / track.round_seconds(arms), double(kEnoughOfLast))));
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

/// Runs `strategy` in workers until one gets through; arms that kill one stay out of the next.
std::vector<ArmResult> race(const std::vector<Arm>& arms, const RaceOptions& options, Progress& progress,
                            const std::function<void(Track&, const std::vector<size_t>&)>& strategy) {
  std::vector<ArmResult> results(arms.size());
  std::vector<size_t> entered(arms.size());
  std::iota(entered.begin(), entered.end(), size_t(0));
  Spent none, &spent = options.spent ? *options.spent : none;
  const Running running;
  bool spared =
      false; ///< once a race is run again with the arm in which its worker was killed from elsewhere
  while (!entered.empty()) {
    running.set(entered.front());
    int round = -1;
    std::string failed;
    Lap lap;
    const auto on_message = [&](const Json& m) {
      if (m.contains("settling")) {
        const double settling = m.value("settling", 0.0);
        spent.settling += settling;
        spent.making += lap.seconds() - settling;
        return;
      }
      const size_t current = std::min(m.value("arm", size_t(0)), arms.size() - 1);
      failed = m.value("failed", failed);
      if (m.contains("last_from")) results[current].last_from = m.value("last_from", 0);
      if (m.contains("dropped")) results[current].dropped = true;
      if (m.contains("dropped_round"))
        for (ArmResult& r : results)
          if (auto at = r.rounds.find(m.value("dropped_round", 0)); at != r.rounds.end())
            at->second.throttled = true;
      if (!m.contains("round")) return;
      results[current].rounds[m.value("round", 0)] = {m.value("seconds", 0.0), m.value("clean", false),
                                                      m.value("megahertz", 0.0), m.value("throttled", false),
                                                      m.value("capped", false)};
      if (m.value("round", 0) == round) return;
      round = m.value("round", 0);
      progress.live(standing(results, entered.front(), round));
    };
    const WorkerEnd end = run_worker(
        [&](Channel& channel) {
          Track track(arms, entered, options, channel, running);
          strategy(track, entered);
        },
        on_message);
    spent.timing += lap.seconds();
    if (end.kind == WorkerEnd::done) break;
    for (size_t arm : entered) results[arm] = {};
    if (end.killed && std::exchange(spared, true)) throw killed_twice(end);
    if (end.killed) continue;
    const size_t current = std::min(running.get(), arms.size() - 1);
    results[current].failure = end.kind == WorkerEnd::timeout ? "timeout" : "crash";
    results[current].detail = failed.empty() ? end.detail : failed;
    std::erase(entered, current);
  }
  return results;
}

} // namespace

std::vector<ArmResult> halving_race(const std::vector<Arm>& arms, const RaceOptions& options,
                                    Progress& progress) {
  return race(arms, options, progress, run_halving);
}

std::vector<ArmResult> full_race(const std::vector<Arm>& arms, int fewest, int most,
                                 const RaceOptions& options, Progress& progress) {
  return race(arms, options, progress, [&](Track& track, const std::vector<size_t>& entered) {
    run_full(track, entered, options, fewest, most, options.deadline, most);
  });
}

std::vector<ArmResult> phased_race(const std::vector<Arm>& arms, const std::vector<Phase>& phases,
                                   const RaceOptions& options, Progress& progress) {
  return race(arms, options, progress, [&](Track& track, const std::vector<size_t>& entered) {
    run_phases(track, entered, phases, options);
  });
}

std::string to_string(Regime r) {
  return r == Regime::bursts ? "bursts" : r == Regime::serial ? "serial" : "sustained";
}

} // namespace deepgen
