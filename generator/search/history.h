// History: the records of a search's earlier rounds, as its strategy sees them.
#pragma once

#include "generator/search/search.h"
#include "generator/space/space.h"

namespace deepgen {

/// A config that was tried. What failed is known to be no good, which is worth as much as a time.
struct Trial {
  size_t rank;
  double ratio; ///< its time to the default's; infinity: it failed
  bool decided; ///< false: neither timed nor failed, as the time was up
  std::string origin;
  int round;
};

/// How long a search has gone without one that was faster by half a percent than all before it.
struct Standstill {
  size_t trials = 0, rounds = 0;
};

class History {
public:
  History(const Space&, const SearchInput&);

  /// In the order of the records, each config once.
  const std::vector<Trial>& trials() const { return trials_; }
  /// Candidates of the problem that were tried, in the space or not.
  size_t count() const { return count_; }
  /// The smallest ratio; infinity when nothing was timed.
  double best_ratio() const { return best_; }
  /// Ranks of the fastest, fastest first; equal ones by rank.
  std::vector<size_t> best(size_t count) const;
  /// How much of the best one's speed it has: 1 for the best, 0 for what failed.
  double speed(const Trial& t) const { return best_ / t.ratio; }
  /// Without those of round 0: however many it tries in vain, nothing has been learned from any of them yet.
  /// A round in which something was faster counts from there on.
  Standstill standstill() const;

private:
  std::vector<Trial> trials_;
  std::vector<bool> tried_;
  size_t count_ = 0;
  double best_;
};

} // namespace deepgen
