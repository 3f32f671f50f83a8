#include "generator/replay/replay.h"

#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deepgen {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kPoints[] = {16, 32, 48, 64, 96, 128, 200, 256, 512, 1024};

Space legal_part(const RecordedSpace& recorded) {
  SearchOptions options;
  for (const RecordedConfig& c : recorded.configs) options.configs.push_back(c.choice);
  Space space(recorded.problem, recorded.arch, recorded.device, options);
  if (space.size() == 0)
    throw Error("no recorded config is legal any more", recorded.problem.key(),
                std::to_string(recorded.configs.size()) + " are recorded", "record the space again");
  return space;
}

/// Nearest rank.
double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const size_t i = size_t(std::ceil(q * double(values.size())));
  return values[std::clamp<size_t>(i, 1, values.size()) - 1];
}

} // namespace

Replay::Replay(const RecordedSpace& recorded)
    : problem_(recorded.problem), arch_(recorded.arch), device_(recorded.device),
      space_(legal_part(recorded)), cut_off_(recorded.cut_off()), illegal_(0), of_rank_(space_.size()),
      best_(kNever) {
  for (const RecordedConfig& c : recorded.configs)
    if (auto rank = space_.rank(c.choice))
      of_rank_[*rank] = c;
    else
      ++illegal_;
  for (size_t rank = 0; rank < of_rank_.size(); ++rank)
    if (const RecordedConfig& c = of_rank_[rank]; c.timed() && c.status == "ok" && c.ratio < best_)
      best_ = c.ratio, best_rank_ = rank;
  if (!std::isfinite(best_))
    throw Error("no recorded config was timed", problem_.key(), "all of them failed");
}

double Replay::default_ratio() const { return of_rank_[0].timed() ? of_rank_[0].ratio : kNever; }

Record Replay::record_of(const Choice& choice, int round, size_t slot, const std::string& origin) const {
  const RecordedConfig& c = of_rank_[*space_.rank(choice)];
  Record r;
  r.stage = "r" + std::to_string(round);
  r.slot = int64_t(slot);
  r.problem = problem_.key();
  r.arch = arch_;
  r.choice = choice;
  r.origin = origin;
  r.status = c.status;
  if (c.timed()) {
    r.timing.emplace();
    r.timing->ratio = r.timing->low = r.timing->high = c.ratio;
    r.timing->samples = c.samples;
  }
  return r;
}

ReplayedSearch Replay::run(const ReplayOptions& options, uint64_t seed) const {
  SearchInput in;
  in.problem = problem_, in.arch = arch_, in.device = device_;
  in.options = options.search;
  in.least_gain = options.least_gain;
  in.options.seed = seed;
  ReplayedSearch search;
  double best = kNever;
  for (;; ++in.round) {
    if (!options.slots.empty() && size_t(in.round) >= options.slots.size()) return search;
    in.slots = options.slots.empty() ? options.batch : options.slots[size_t(in.round)];
    const Plan plan = next_plan(in, space_);
    if (plan.slots.empty()) return search;
    for (size_t i = 0; i < plan.slots.size(); ++i) {
      in.records.push_back(record_of(plan.slots[i].choice, in.round, i, plan.slots[i].origin));
      const Record& r = in.records.back();
      if (r.ok() && r.timing) best = std::min(best, r.timing->ratio);
      search.tried.push_back(r.choice);
      search.best.push_back(best);
    }
  }
}

ReplaySummary summarize(const Replay& replay, const std::vector<ReplayedSearch>& searches) {
  ReplaySummary summary;
  size_t longest = 0;
  std::vector<double> lengths;
  for (const ReplayedSearch& s : searches) {
    longest = std::max(longest, s.best.size());
    lengths.push_back(double(s.best.size()));
  }
  if (longest == 0) return summary;
  summary.trials = quantile(lengths, 0.5);
  std::vector<size_t> at;
  for (size_t trials : kPoints)
    if (trials < longest) at.push_back(trials);
  at.push_back(longest);
  for (size_t trials : at) {
    std::vector<double> regrets;
    RegretPoint point{trials, 0, 0, 0, 0};
    for (const ReplayedSearch& s : searches) {
      regrets.push_back(s.best[std::min(trials, s.best.size()) - 1] / replay.best_ratio() - 1);
      point.within_half += (regrets.back() <= 0.005) / double(searches.size());
      point.within_two += (regrets.back() <= 0.02) / double(searches.size());
    }
    point.median = quantile(regrets, 0.5);
    point.p90 = quantile(regrets, 0.9);
    summary.points.push_back(point);
  }
  return summary;
}

} // namespace deepgen
