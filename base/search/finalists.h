// Which candidates of a search's rounds go into its finals: one rule for the tool that compiles them for an
// awkward shape, and for the one that times them.
#pragma once

#include "base/search/record.h"

namespace deepgen {

constexpr size_t kFinalists = 6; ///< beside the default, at most
/// The same of a problem with ranges, on a GPU: half as many again as the sizes at which a round has timed,
/// between these. Every size has its best one, and some their second: rounds tell those apart badly.
constexpr size_t kRangedFinalists = 20, kMostRangedFinalists = 32, kRangedFinalistsOfCpu = 12;

struct LoggedRecord {
  Record record;
  std::string log;                  ///< path of the log that it is from
  size_t round = 0, last_timed = 0; ///< number of that log, and of the one that has its last time
};

/// The records of rounds in the order of the logs. What a later round has timed again has the time of then.
/// Where the default could not be timed, ratios are to the fastest, by seconds. Of a search for balanced
/// calls `timing` is the geometric mean over both regimes. What a round has timed sustained alone counts as
/// if bursts had changed its ratio as they did the median of the others.
std::vector<LoggedRecord> read_logs(const std::vector<std::string>& logs);
/// The same of one search. Throws Error when they are of several problems.
std::vector<LoggedRecord> read_records(const std::vector<std::string>& logs);

/// What became of the default config; nullptr when no log has it.
const LoggedRecord* default_of(const std::vector<LoggedRecord>&);

/// The default first, when it is good, then the best others by ratio, each of other code; what left its round
/// early ranks behind what stayed, and what a later round did not time again behind what it did. Of a problem
/// with ranges the best at each point take turns; before them, where records tell their grids, who is missing
/// at the points and the steps of all (ranged_steps.h): a kernel may be the best at sizes that no round has
/// timed; where that is batch invariant, those of the order of sums
/// that was the fastest at all points together, and a few others.
std::vector<LoggedRecord> finalists_of(const std::vector<LoggedRecord>&);

} // namespace deepgen
