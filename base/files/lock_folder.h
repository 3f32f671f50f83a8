// Where the locks lie that all builds of one user on one machine share.
#pragma once

#include <string>
#include <vector>

namespace deepgen {

struct LockFolder {
  std::string path;
  std::string refused; ///< a line for each better place that is there but no good, with why; often empty
};

/// The first good one of: $DEEPGEN_LOCKS, $XDG_RUNTIME_DIR, /run/user/<uid>, $TMPDIR, /tmp, the cache's
/// folder, the build tree around the present folder. Good is what belongs to this user alone, is no link, and
/// takes files. Throws Error when none is.
LockFolder find_lock_folder();
/// The same of these: each is made if its parent is there, and closed to others if it is this user's.
LockFolder find_lock_folder(const std::vector<std::string>& places);
/// The places of this process, best first; those that it has no name for are left out.
std::vector<std::string> lock_places();

/// find_lock_folder().path
std::string machine_lock_dir();

} // namespace deepgen
