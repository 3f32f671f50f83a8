// Replay: runs strategies against a recorded space, which takes milliseconds, needs no device and has no
// noise.
#pragma once

#include "generator/replay/recorded_space.h"
#include "generator/search/search.h"
#include "generator/space/space.h"

namespace deepgen {

struct ReplayOptions {
  SearchOptions search;      ///< its seed is the first one
  std::vector<size_t> slots; ///< of each round; empty: rounds of `batch` until search.trials
  size_t batch = 16;
  int64_t seeds = 20;
  double least_gain = 0; ///< SearchInput's
};

/// One search: the trials in their order.
struct ReplayedSearch {
  std::vector<Choice> tried;
  std::vector<double>
      best; ///< after each trial, the smallest ratio so far; infinity before the first success
};

/// The recorded configs that the templates still have; their costs are the present ones.
class Replay {
public:
  /// Throws Error when no recorded config is legal any more.
  explicit Replay(const RecordedSpace&);

  const Space& space() const { return space_; }
  bool cut_off() const { return cut_off_; }   ///< the recorded sweep
  size_t illegal() const { return illegal_; } ///< recorded configs that are left out
  double best_ratio() const { return best_; } ///< of the whole space
  double default_ratio() const;               ///< of its best estimate; infinity when that failed
  /// How far down the ranking by estimate the best config is: 0 is first.
  size_t best_rank() const { return best_rank_; }

  ReplayedSearch run(const ReplayOptions&, uint64_t seed) const;

private:
  Record record_of(const Choice&, int round, size_t slot, const std::string& origin) const;

  Problem problem_;
  std::string arch_;
  Device device_;
  Space space_;
  bool cut_off_;
  size_t illegal_, best_rank_ = 0;
  std::vector<RecordedConfig> of_rank_;
  double best_ = 0;
};

/// Regret: how much slower the best one found is than the best of the whole space; over all seeds.
struct RegretPoint {
  size_t trials;
  double median, p90, within_half,
      within_two; ///< the last two: share of the seeds with a regret up to 0.5 % and 2 %
};

struct ReplaySummary {
  std::vector<RegretPoint> points; ///< at 16, 32, 64, ... trials, and at the last
  double trials = 0;               ///< median of the seeds' trials: patience may end a search early
};

ReplaySummary summarize(const Replay&, const std::vector<ReplayedSearch>&);

} // namespace deepgen
