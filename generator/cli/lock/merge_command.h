// lock merge --from: other locks into one, by evidence.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace deepgen {

struct MergeLocksOptions {
  std::string lock, output, force;
  std::vector<std::string> from;
  bool dry_run = false;
  int verbosity = 1;
};

void add_merge_locks_options(CLI::App& merge, MergeLocksOptions&);
/// Returns 0; what cannot be read throws Error before anything is written.
int merge_locks(const MergeLocksOptions&);

} // namespace deepgen
