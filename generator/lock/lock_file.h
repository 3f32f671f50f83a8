// Lock file: how the committed file is changed by several processes at once, and is never half written.
#pragma once

#include "generator/lock/lock.h"

#include <functional>

namespace deepgen {

/// The file behind symbolic links, also when it does not exist yet.
std::string real_path(const std::string& path);

/// Reads the lock under an exclusive lock of its folder, and calls `change` with it and its real path.
/// Replaces the file atomically where the lock's text has become another one. Returns whether it has.
bool change_lock(const std::string& path, const std::function<void(Lock&, const std::string& real)>& change);

} // namespace deepgen
