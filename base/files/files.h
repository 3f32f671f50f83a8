// Files shared between processes of a build: read within bounds, written whole or not at all, rewritten only
// on change.
#pragma once

#include <cstdint>
#include <string>

namespace deepgen {

constexpr int64_t kMostBytes = int64_t(64) << 20; ///< of any file that is read whole
constexpr int64_t kMostOfLogs = int64_t(1) << 30; ///< of logs of measurements and of recorded spaces

/// Throws Error when it cannot be read to its end, is larger than `most`, or is no regular file: a pipe may
/// never end.
std::string read_file(const std::string& path, int64_t most = kMostBytes);
/// Throws Error when that cannot be told: what a failing disk or a folder without permission hides is not
/// absent.
bool file_exists(const std::string& path);
/// Writes through a temporary file of its own beside `path` and rename(2), so that a reader or a crash never
/// sees half a file. A file that is there keeps its mode, and its owner and group where this user may set
/// them.
void write_atomically(const std::string& path, const std::string& content);
/// As write_atomically, but leaves an equal file and its time stamp alone (Ninja's restat then prunes).
/// Returns whether the file was written. Creates the folder.
bool write_if_changed(const std::string& path, const std::string& content);
/// The path of this program, without /proc too.
std::string own_program();

} // namespace deepgen
