// Locks between processes: of one file or folder, of a whole host, and the turns of compiling and measuring.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace deepgen {

/// flock(2) on `path` (created if absent) until destruction. Survives crashes: the kernel drops it with the
/// process.
class FileLock {
public:
  enum Mode { kShared, kExclusive };
  FileLock(const std::string& path, Mode mode);
  /// Exclusive, on the folder itself: the same one for everybody who sees the folder, from whatever
  /// container, and no file is left in it. Empty where the file system cannot lock folders.
  static std::optional<FileLock> of_folder(const std::string& folder);
  /// Exclusive, for all users of this host: on the file of this name in /tmp, which stays there. Where that
  /// file cannot be used, for all processes of this user, with a word.
  static FileLock of_host(const std::string& name);
  /// The same, but empty while another has it.
  static std::optional<FileLock> try_of_host(const std::string& name);
  ~FileLock();
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

private:
  explicit FileLock(int fd) : fd_(fd) {}
  static std::optional<FileLock> lock_of_host(const std::string& path, int operation);
  int fd_;
};

/// Where of_host() has its file.
std::string host_lock_path(const std::string& name);
/// Who has the file locked, for people: "process 123 (deepgen-measure) of user ann". Empty when nobody is to
/// be seen.
std::string lock_holder(const std::string& path);

/// Keeps compiles out of the machine while finalists are timed. A compile holds `compile_turn()`; the playoff
/// holds `quiet_turn()`, which waits for running compiles and makes new ones wait. Playoffs on several GPUs
/// share the quiet.
class Turn {
public:
  static Turn compile_turn();
  static Turn quiet_turn(FileLock::Mode mode = FileLock::kExclusive);

private:
  explicit Turn(std::vector<FileLock> held) : held_(std::move(held)) {}
  std::vector<FileLock> held_;
};

} // namespace deepgen
