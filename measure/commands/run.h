// The commands of deepgen-measure that time something. Both print a summary line to stderr.
#pragma once

#include "measure/race/options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace deepgen {

/// Verifies and times the candidates of one round against the anchor; writes one record for each. Beside them
/// the best of earlier rounds are timed again: other candidates, and a hotter device, make other ratios.
struct RunCommand {
  std::string plan, kernels, device, anchor, output;
  std::vector<std::string> records; ///< logs of the earlier rounds
  std::string cache;                ///< folder; empty: the environment's
  int64_t slots = 0;
  MeasureOptions options;
  std::string label; ///< of the function, in a build: a round then says nothing but what went wrong
};
void run(const RunCommand&);

/// Times the best of all rounds, the default twice and the vendor; writes the records of stage "final".
struct PlayoffCommand {
  std::string device, output;
  std::vector<std::string> records;
  MeasureOptions options;
  std::vector<std::string>
      awkward; ///< kernel files of the finalists' awkward shapes, where the rounds' files lack them
  std::vector<std::string> extra = {}; ///< regimes besides the sustained one: "bursts", "serial"
  std::string label = {};              ///< of the function, in a build: one line about its search
  std::string searches = {};           ///< searches.txt of the build tree: how many of them are done
};
void playoff(const PlayoffCommand&);

} // namespace deepgen
