// How far the searches of a build tree are, for the one line that a playoff prints and for `deepgen status`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace deepgen {

/// One line of searches.txt, which CMake writes: "build <path of final.jsonl>" for what a plain build
/// searches, "tune <path>" for what the tune target searches besides.
struct PlannedSearch {
  bool by_build = false;
  std::string log;
};
std::vector<PlannedSearch> parse_searches(const std::string& text);

/// Seconds that are left, from the times at which the searches so far have ended: the middle gap between the
/// latest of them, once for each that is missing. Negative: too few have ended to tell.
double seconds_left(std::vector<double> ended, size_t missing);

struct SearchProgress {
  size_t ended = 0;
  int64_t began = 0, last = 0; ///< seconds since 1970: the first plan, the last end; 0: there is none
  double seconds_left = -1;    ///< negative: nobody can tell
};
SearchProgress progress_of(const std::vector<PlannedSearch>& searches);

/// "; 3 of 15 problems searched, about 5 min left"; empty when `own`, the log that is written now, is no
/// planned search.
std::string searches_done(const std::vector<PlannedSearch>& searches, const std::string& own);

} // namespace deepgen
