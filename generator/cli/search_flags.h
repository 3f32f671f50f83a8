// The options of a search on a command line, for the commands that have one.
#pragma once

#include "base/problem/problem.h"
#include "base/search/search_options.h"

namespace CLI {
class App;
}

namespace deepgen {

/// What is given on the command line goes before what the file says.
struct SearchFlags {
  std::string file;
  std::optional<std::string> strategy;
  std::optional<uint64_t> seed;
  std::optional<int64_t> trials, patience;
};

void add_search_file(CLI::App&, SearchFlags&); ///< --search alone
void add_search_flags(CLI::App&, SearchFlags&);

/// With the configs of the saved space that the file names, for this problem.
SearchOptions search_options(const SearchFlags&, const Problem&, const std::string& arch);

} // namespace deepgen
