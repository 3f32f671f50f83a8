#include "generator/search/history.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

namespace deepgen {
namespace {

constexpr double kProgress = 0.005;
constexpr double kFailed = std::numeric_limits<double>::infinity();

/// Failures that say nothing about the config: too little time, or a lesser device.
bool is_undecided(const Record& r) {
  return !r.timing && (r.status == "dropped" || r.status == "unsupported");
}

/// "ok", and "dropped" after a first sample that was far too slow: there is a time.
double ratio_of(const Record& r) {
  const bool timed = r.timing && (r.ok() || r.status == "dropped");
  return timed && r.timing->ratio > 0 ? r.timing->ratio : kFailed;
}

int round_of(const Record& r) {
  return r.stage.size() > 1 && r.stage[0] == 'r' ? std::atoi(r.stage.c_str() + 1) : 0;
}

} // namespace

History::History(const Space& space, const SearchInput& in) : tried_(space.size(), false), best_(kFailed) {
  std::map<std::string, double> by_code; // a duplicate takes as long as its double
  for (const Record& r : in.records) {
    if (r.problem != in.problem.key() || r.arch != in.arch || r.is_vendor()) continue;
    ++count_;
    double ratio = ratio_of(r);
    if (std::isfinite(ratio))
      by_code.emplace(r.sha256, ratio);
    else if (auto same = by_code.find(r.sha256); r.status == "duplicate" && same != by_code.end())
      ratio = same->second;
    const auto rank = space.rank(r.choice);
    if (!rank || tried_[*rank]) continue;
    tried_[*rank] = true;
    trials_.push_back({*rank, ratio, !is_undecided(r), r.origin, round_of(r)});
    best_ = std::min(best_, ratio);
  }
}

std::vector<size_t> History::best(size_t count) const {
  std::vector<std::pair<double, size_t>> timed;
  for (const Trial& t : trials_)
    if (std::isfinite(t.ratio)) timed.emplace_back(t.ratio, t.rank);
  std::sort(timed.begin(), timed.end());
  std::vector<size_t> ranks;
  for (size_t i = 0; i < std::min(count, timed.size()); ++i) ranks.push_back(timed[i].second);
  return ranks;
}

Standstill History::standstill() const {
  double reference = kFailed;
  Standstill still;
  int round = 0; // that was counted last
  for (const Trial& t : trials_) {
    if (t.ratio < reference * (1 - kProgress)) {
      reference = t.ratio;
      still = {};
      round = t.round;
    } else if (t.round > 0) {
      ++still.trials;
      still.rounds += t.round != round;
      round = t.round;
    }
  }
  return still;
}

} // namespace deepgen
