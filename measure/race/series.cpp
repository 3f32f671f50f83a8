#include "measure/race/series.h"

#include "base/json/json.h"
#include "measure/process/worker.h"
#include "measure/race/race_messages.h"
#include "measure/race/race_track.h"
#include "measure/race/slices.h"
#include "measure/race/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <utility>

namespace deepgen {
namespace {

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

/// What the parent has of one race, of one worker's messages.
class Score {
public:
  Score(std::vector<ArmResult>& results, size_t anchor, bool further, Spent& spent, Progress& progress)
      : results_(results), anchor_(anchor), spent_(spent), start_(further ? spent.further : spent.starts),
        progress_(progress) {
    ++start_.count;
  }

  void take(const race::Message& message) {
    std::visit([&](const auto& m) { hear(m); }, message);
  }
  const std::string& why_failed() const { return why_failed_; }
  /// Nothing more is heard.
  void close() { spent_.timing += lap_.seconds(); }

private:
  void hear(const race::Begun&) {}
  void hear(const race::FirstMade&) { start_.seconds += since_begin_.seconds(); }
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
  Spent::Start& start_;
  Progress& progress_;
  std::string why_failed_;
  int round_ = -1;
  Lap lap_, since_begin_;
};

std::vector<size_t> all_arms(const Race& race) {
  std::vector<size_t> all(race.arms.size());
  std::iota(all.begin(), all.end(), size_t(0));
  return all;
}

void set_deadline(Race& race) {
  if (race.seconds > 0) race.options.deadline = wall_seconds() + race.seconds;
}

/// Arms first: they may hold what they have made of the field's memory.
void free_all(Race& race) {
  race.strategy = {}, race.options.settle = {};
  race.arms.clear();
  race.field.reset();
}

/// The worker's whole work: races from..to - 1. Of the first one, whose deadline is set, these arms run.
void race_in_worker(std::vector<Race>& races, size_t from, size_t to, std::vector<size_t> entered,
                    Channel& channel, const Running& running) {
  for (size_t i = from; i < to; ++i) {
    Race& race = races[i];
    if (i > from) {
      free_all(races[i - 1]);
      entered = all_arms(race);
      channel.send(race::to_json(race::Begun{int(i)}));
      set_deadline(race);
    }
    if (entered.empty()) continue;
    std::vector<size_t> at_first = entered;
    std::erase_if(at_first, [&](size_t arm) { return arm >= race.made; });
    Track track(race.arms, at_first, race.options, channel, running);
    race.strategy(track, entered, race.options);
  }
}

/// Races that share a worker.
class Shared {
public:
  using Tell = std::function<bool(const std::vector<ArmResult>&)>;
  Shared(std::vector<Race> races, const Tell& tell, Progress& progress)
      : races_(std::move(races)), tell_(tell), progress_(progress) {
    begin(0);
  }

  /// Tells of all of them; of those behind a race whose worker was lost nothing. `tell` may end it, too.
  void run() {
    size_t to = races_.size();
    while (!entered_.empty()) {
      const WorkerEnd end = run_worker_to(to);
      if (ended_) return;
      score_->close();
      if (end.kind == WorkerEnd::late || (end.kind == WorkerEnd::done && at_ + 1 == to)) break;
      blame(end);
      to = at_ + 1;
    }
    const bool alone = to < races_.size();
    while (tell_(results_) && !alone && at_ + 1 < races_.size()) begin(at_ + 1); // these are late
  }

private:
  struct Ended {};

  std::vector<Race> races_;
  const Tell& tell_;
  Progress& progress_;
  size_t at_ = 0; ///< what follows is of this race
  std::vector<size_t> entered_;
  std::vector<ArmResult> results_;
  std::optional<Score> score_;
  bool spared_ = false; ///< a race is run again with the arm in which its worker was killed from elsewhere
  bool ended_ = false;
  const Running running_;
  Spent none_;

  void begin(size_t i) {
    at_ = i;
    entered_ = all_arms(races_[i]);
    results_.assign(entered_.size(), {});
    set_deadline(races_[i]);
  }

  void listen(bool further) {
    Spent* spent = races_[at_].options.spent;
    score_.emplace(results_, entered_.empty() ? 0 : entered_.front(), further, spent ? *spent : none_,
                   progress_);
  }

  /// A message that is none is a crash of the arm that ran, like any other that a broken worker comes to.
  WorkerEnd run_worker_to(size_t to) {
    running_.set(entered_.front());
    listen(false);
    try {
      return run_worker(
          [&](Channel& channel) { race_in_worker(races_, at_, to, entered_, channel, running_); },
          [&](const Json& json) { hear(race::message_from(json, results_.size()), to); },
          races_[at_].options.end);
    } catch (const ForeignMessage& e) {
      return {WorkerEnd::crash, e.what(), "", false, 0};
    } catch (const Ended&) { // which has ended the worker
      ended_ = true;
      return {};
    }
  }

  void hear(const race::Message& message, size_t to) {
    const auto* begun = std::get_if<race::Begun>(&message);
    if (!begun) return score_->take(message);
    if (size_t(begun->race) != at_ + 1 || at_ + 1 >= to)
      throw ForeignMessage("the worker began a race out of turn", "race " + std::to_string(begun->race),
                           "it was in race " + std::to_string(at_), "leave out the kernel that ran");
    score_->close();
    if (!tell_(results_)) throw Ended();
    begin(at_ + 1);
    listen(true);
  }

  /// Nothing that the worker has said of this race counts.
  void blame(const WorkerEnd& end) {
    const std::string why = score_->why_failed();
    for (size_t arm : entered_) results_[arm] = {};
    if (end.killed && std::exchange(spared_, true)) throw killed_twice(end);
    if (end.killed) return;
    const size_t current = std::min(running_.get(), results_.size() - 1);
    ArmResult& r = results_[current];
    r.failure = end.kind == WorkerEnd::timeout ? "timeout" : "crash";
    r.detail = !why.empty()                  ? why
               : end.kind == WorkerEnd::done ? "the worker ended before its last race"
                                             : end.detail;
    std::erase(entered_, current);
  }
};

bool has_samplers(const Race& race) {
  return !race.arms.empty() && std::all_of(race.arms.begin(), race.arms.end(),
                                           [](const Arm& arm) { return bool(arm.make_sampler); });
}

} // namespace

Race plan_full(std::vector<Arm> arms, int fewest, int most, const RaceOptions& options) {
  Race r;
  r.arms = std::move(arms), r.options = options;
  r.strategy = [=](Track& track, const std::vector<size_t>& entered, const RaceOptions& o) {
    race::run_full(track, entered, o, fewest, most, o.deadline, most);
  };
  return r;
}

Race plan_halving(std::vector<Arm> arms, const RaceOptions& options) {
  Race r;
  r.arms = std::move(arms), r.options = options;
  r.strategy = [](race::Track& track, const std::vector<size_t>& entered, const RaceOptions& o) {
    race::run_halving(track, entered, o);
  };
  return r;
}

size_t run_series(const Series& series, Progress& progress) {
  size_t done = 0;
  bool more = true;
  while (more && done < series.count) {
    std::vector<Race> races = {series.race(done)};
    while (has_samplers(races.back()) && done + races.size() < series.count)
      races.push_back(series.race(done + races.size()));
    const Shared::Tell tell = [&](const std::vector<ArmResult>& results) {
      more = series.done(done, results);
      ++done;
      return more;
    };
    Shared(std::move(races), tell, progress).run();
  }
  return done;
}

std::vector<ArmResult> run_alone(const Race& race, Progress& progress) {
  std::vector<ArmResult> out;
  run_series({1, [&](size_t) { return race; },
              [&](size_t, const std::vector<ArmResult>& results) { return out = results, true; }},
             progress);
  return out;
}

} // namespace deepgen
