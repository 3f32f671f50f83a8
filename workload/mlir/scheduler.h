// auto-scheduler.cfg: the INI of an auto-scheduler around IREE, which names a module, a space of tiles, and a
// tuner.
#pragma once

#include "base/problem/gemm.h"
#include "base/search/search_options.h"

namespace deepgen::tensors {

struct Scheduler {
  std::string input;  ///< the module's path, relative to the file
  std::string output; ///< of its results as CSV
  std::vector<std::pair<std::string, std::vector<int64_t>>> space; ///< "tile_m": {64, 128}
  std::string tuner;
  int64_t trials = 1;
  std::string toolchain; ///< iree_bin

  /// Throws Error that names the line. A key that comes twice with one value is taken once.
  static Scheduler parse(const std::string& text, const std::string& where);
};

/// The search that it asks for, of these problems, and sentences: what became of each setting, and what has
/// no counterpart.
struct ScheduledSearch {
  SearchOptions options;
  std::vector<std::string> notes;
};
ScheduledSearch search_of(const Scheduler&, const std::vector<Gemm>& problems);

} // namespace deepgen::tensors
