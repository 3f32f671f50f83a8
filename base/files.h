// Files shared between processes of a build: written whole or not at all, rewritten only on change, locked.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace deepgen {

std::string read_file(const std::string& path); ///< throws Error when it cannot be read
bool file_exists(const std::string& path);
/// Writes through a temporary file of its own beside `path` and rename(2), so that a reader or a crash never sees half a file.
void write_atomically(const std::string& path, const std::string& content);
/// As write_atomically, but leaves an equal file and its time stamp alone (Ninja's restat then prunes).
/// Returns whether the file was written. Creates the folder.
bool write_if_changed(const std::string& path, const std::string& content);

/// flock(2) on `path` (created if absent) until destruction. Survives crashes: the kernel drops it with the process.
class FileLock {
public:
  enum Mode { kShared, kExclusive };
  FileLock(const std::string& path, Mode mode);
  /// Exclusive, on the folder itself: the same one for everybody who sees the folder, from whatever container, and no
  /// file is left in it. Empty where the file system cannot lock folders.
  static std::optional<FileLock> of_folder(const std::string& folder);
  /// Exclusive, for all users of this host: on the file of this name in /tmp, which stays there.
  static FileLock of_host(const std::string& name);
  /// The same, but empty while another has it.
  static std::optional<FileLock> try_of_host(const std::string& name);
  ~FileLock();
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

private:
  explicit FileLock(int fd) : fd_(fd) {}
  static std::optional<FileLock> lock_of_host(const std::string& name, int operation);
  int fd_;
};

/// Folder for lock files that all builds of this user on this machine share (under XDG_RUNTIME_DIR or /tmp).
std::string machine_lock_dir();

/// Keeps compiles out of the machine while finalists are timed. A compile holds `compile_turn()`; the playoff holds
/// `quiet_turn()`, which waits for running compiles and makes new ones wait. Playoffs on several GPUs share the quiet.
class Turn {
public:
  static Turn compile_turn();
  static Turn quiet_turn(FileLock::Mode mode = FileLock::kExclusive);

private:
  explicit Turn(std::vector<FileLock> held) : held_(std::move(held)) {}
  std::vector<FileLock> held_;
};

} // namespace deepgen
