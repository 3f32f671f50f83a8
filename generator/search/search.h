// The search: one function from what has been measured to what is to be tried next.
#pragma once

#include "base/kernel/device.h"
#include "base/problem/points.h"
#include "base/search/plan.h"
#include "base/search/record.h"
#include "base/search/search_options.h"

namespace deepgen {

class Space;

struct SearchInput {
  Problem problem;
  std::string arch = "cpu";
  Device device;
  int round = 0;
  size_t slots = 32;
  std::optional<Choice> incumbent; ///< what the lock holds, if anything
  std::vector<Record> records;     ///< of the earlier rounds
  SearchOptions options;
  TunePoints points; ///< of a problem with ranges; empty: default_tune_points()
  /// What the measurement can tell apart. The search ends after round 0 when that says that nothing is faster
  /// by so much than the fastest so far (flat_top.h), unless options.patience is 0; 0: it goes on.
  double least_gain = 0;
};

/// Whether it ends so: of a later round than 0.
bool nothing_to_gain(const SearchInput&, const Space&);

/// The next round's candidates: at most `slots`, none measured before, none twice; empty when nothing is
/// left, or options.trials, options.patience or least_gain say that it is enough. Round 0 begins with the
/// default and the incumbent, the rest is the strategy's choice. The same input gives the same plan on every
/// host.
Plan next_plan(const SearchInput&);
/// The same in a space that is there already.
Plan next_plan(const SearchInput&, const Space&);

} // namespace deepgen
