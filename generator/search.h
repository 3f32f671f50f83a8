// The search strategy: one function from what has been measured to what is to be tried next.
#pragma once

#include "base/device.h"
#include "base/plan.h"
#include "base/record.h"
#include "base/search_options.h"

namespace deepgen {

struct SearchInput {
  Problem problem;
  std::string arch = "cpu";
  Device device;
  int round = 0;
  size_t slots = 32;
  std::optional<Choice> incumbent; ///< what the lock holds, if anything
  std::vector<Record> records;     ///< of the earlier rounds
  SearchOptions options;
};

/// The next round's candidates: at most `slots`, none measured before, none twice; empty when nothing is
/// left. Round 0: the default, the incumbent, the model's best spread over strata, a few random ones. Later
/// rounds: neighbours of the best measured, and random ones from the model's better half. The same input
/// gives the same plan on every host.
Plan next_plan(const SearchInput&);

} // namespace deepgen
