// What the samples of a race say.
#include "measure/race/race.h"
#include "measure/race/statistics.h"

#include <cmath>
#include <set>

namespace deepgen {

std::vector<double> log_ratios(const std::map<int, Sample>& arm, const std::map<int, Sample>& anchor,
                               int from_round) {
  std::vector<double> clean, kept, all;
  for (const auto& [round, sample] : arm) {
    auto other = anchor.find(round);
    if (round < from_round || other == anchor.end() || !(sample.seconds > 0) || !(other->second.seconds > 0))
      continue;
    all.push_back(std::log(sample.seconds / other->second.seconds));
    if (sample.throttled || other->second.throttled) continue;
    kept.push_back(all.back());
    if (sample.clean && other->second.clean) clean.push_back(all.back());
  }
  if (clean.size() >= 3 && clean.size() * 2 >= kept.size()) return clean;
  return kept.empty() ? all : kept;
}

std::vector<double> log_ratios(const ArmResult& arm, const ArmResult& anchor) {
  const bool both_last = arm.last_from >= 0 && anchor.last_from >= 0;
  return log_ratios(arm.rounds, anchor.rounds, both_last ? std::max(arm.last_from, anchor.last_from) : 0);
}

bool was_cut(const ArmResult& arm, const ArmResult& anchor) {
  return arm.timed() && arm.last_from < 0 && anchor.last_from >= 0;
}

Interval ratio_by_way_of(const std::vector<const ArmResult*>& stayed, const ArmResult& arm,
                         const ArmResult& anchor, uint64_t seed) {
  if (stayed.empty()) return bootstrap_median(log_ratios(arm, anchor), seed);
  Interval sum;
  for (const ArmResult* other : stayed) {
    const Interval first = bootstrap_median(log_ratios(arm.rounds, other->rounds), seed);
    const Interval last = bootstrap_median(log_ratios(*other, anchor), seed);
    sum.low += first.low + last.low, sum.middle += first.middle + last.middle,
        sum.high += first.high + last.high;
  }
  const double count = double(stayed.size());
  return {sum.low / count, sum.middle / count, sum.high / count};
}

Timing summarize(const ArmResult& arm, const ArmResult& anchor, uint64_t seed) {
  std::vector<double> clean, kept, all;
  for (const auto& [round, sample] : arm.rounds) {
    if (round < arm.last_from) continue;
    all.push_back(sample.seconds);
    if (sample.throttled) continue;
    kept.push_back(sample.seconds);
    if (sample.clean) clean.push_back(sample.seconds);
  }
  if (kept.empty()) kept = all;
  const std::vector<double>& used = clean.empty() ? kept : clean;
  const Interval ratio = bootstrap_median(log_ratios(arm, anchor), seed);
  Timing t;
  t.seconds = finite(median(used));
  t.quartile1 = finite(quantile(used, 0.25));
  t.quartile3 = finite(quantile(used, 0.75));
  t.ratio = finite(std::exp(ratio.middle));
  t.low = finite(std::exp(ratio.low));
  t.high = finite(std::exp(ratio.high));
  t.samples = int64_t(kept.size());
  t.clean = kept.empty() ? 0 : double(clean.size()) / double(kept.size());
  return t;
}

size_t anchor_of(const std::vector<ArmResult>& results) {
  size_t i = 0;
  while (i < results.size() && !results[i].timed()) ++i;
  return i;
}

double clean_share(const std::vector<ArmResult>& results) {
  double clean = 0, all = 0;
  for (const ArmResult& r : results)
    for (const auto& [round, sample] : r.rounds)
      if (!sample.throttled && !r.dropped) clean += sample.clean, all += 1;
  return all > 0 ? clean / all : 0;
}

double dropped_share(const std::vector<ArmResult>& results) {
  std::set<int> all, dropped;
  for (const ArmResult& r : results)
    for (const auto& [round, sample] : r.rounds) {
      all.insert(round);
      if (sample.throttled) dropped.insert(round);
    }
  return all.empty() ? 0 : double(dropped.size()) / double(all.size());
}

} // namespace deepgen
