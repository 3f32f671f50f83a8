#include "measure/commands/ranged_round.h"

#include "base/problem/points.h"
#include "base/search/names.h"
#include "measure/race/series.h"

#include <algorithm>
#include <set>

namespace deepgen {
namespace {

using FieldAt = std::function<std::unique_ptr<SizedField>(const Sizes&)>;

class RangedRound {
public:
  RangedRound(const std::vector<Sizes>& sizes, const std::vector<Candidate*>& list, const FieldAt& field,
              const RaceOptions& options, double seconds, Progress& progress)
      : sizes_(sizes), list_(list), field_(field), options_(options),
        seconds_(seconds / double(sizes_.size())), progress_(progress) {}

  std::vector<ArmResult> run() {
    while (!pass()) {
    }
    for (Candidate* c : list_) {
      if (!c->open()) continue;
      if (c->record.points.empty()) {
        c->decide("dropped", "not timed within the time budget; raise --seconds");
        continue;
      }
      c->record.timing = mean_timing(c->record.points);
      if (slow_.count(c))
        c->decide("dropped", "more than 3 times slower than the fastest wherever it was timed");
      else
        c->decide("ok", "");
    }
    return std::move(all_);
  }

private:
  const std::vector<Sizes>& sizes_;
  const std::vector<Candidate*>& list_;
  const FieldAt& field_;
  RaceOptions options_;
  double seconds_;
  Progress& progress_;
  std::vector<ArmResult> all_;
  std::set<const Candidate*> slow_; ///< so far wherever they were timed

  std::vector<Candidate*> open() const {
    std::vector<Candidate*> out;
    for (Candidate* c : list_)
      if (c->open()) out.push_back(c);
    return out;
  }

  /// Those for this size; the first one is the anchor, which is timed at all.
  std::vector<Candidate*> open_at(const Sizes& at) const {
    std::vector<Candidate*> out;
    for (Candidate* c : open())
      if (out.empty() || c->at.empty() || std::find(c->at.begin(), c->at.end(), at) != c->at.end())
        out.push_back(c);
    return out;
  }

  /// False where the anchor has failed.
  bool pass() {
    const std::vector<Candidate*> entered = open();
    slow_.insert(entered.begin(), entered.end());
    for (Candidate* c : entered) c->record.points.clear();
    std::vector<std::vector<Candidate*>> lists(sizes_.size());
    bool failed = false;
    const auto race = [&](size_t i) {
      lists[i] = open_at(sizes_[i]);
      return plan(lists[i], sizes_[i], all_.empty() && i == 0 ? Heat::brief : Heat::kept);
    };
    const auto done = [&](size_t i, const std::vector<ArmResult>& results) {
      const std::vector<Candidate*>& running = lists[i];
      if (running.empty()) return false;
      all_.insert(all_.end(), results.begin(), results.end());
      for (size_t k = 0; k < running.size(); ++k) note(*running[k], results[k], results.front(), sizes_[i]);
      failed = !running.front()->open();
      return !failed;
    };
    run_series({sizes_.size(), race, done}, progress_);
    return !failed;
  }

  Race plan(const std::vector<Candidate*>& running, const Sizes& at, Heat heat) const {
    const std::shared_ptr<SizedField> field = field_(at);
    std::vector<Arm> arms;
    for (const Candidate* c : running)
      arms.push_back(field->kernel_arm(c->record.slot < 0 ? "anchor" : candidate_name(c->record), c->main()));
    RaceOptions options = options_;
    field->complete(options, heat);
    Race r = plan_halving(std::move(arms), options);
    r.field = field, r.seconds = seconds_;
    return r;
  }

  void note(Candidate& c, const ArmResult& result, const ArmResult& anchor, const Sizes& at) {
    if (!result.failure.empty())
      c.decide(result.failure, "while it was timed: " + result.detail);
    else if (result.timed() && anchor.timed())
      c.record.points.push_back({at, summarize(result, anchor, options_.seed)});
    if (!result.dropped) slow_.erase(&c);
  }
};

} // namespace

std::vector<Sizes> sizes_of_round(const std::vector<Sizes>& points, const std::vector<Candidate*>& list) {
  std::vector<Sizes> all = points;
  for (const Candidate* c : list) all.insert(all.end(), c->at.begin(), c->at.end());
  return ascending(std::move(all));
}

std::vector<ArmResult> time_at_points(const std::vector<Sizes>& sizes, const std::vector<Candidate*>& list,
                                      const FieldAt& field, const RaceOptions& options, double seconds,
                                      Progress& progress) {
  return RangedRound(sizes, list, field, options, seconds, progress).run();
}

} // namespace deepgen
