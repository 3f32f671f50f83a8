#include "base/files/locks.h"

#include "base/files/lock_folder.h"
#include "base/text/error.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utility>

namespace deepgen {
namespace {

/// Waits until flock(2) has it; false on an error.
bool wait_for(int fd, int operation) {
  while (flock(fd, operation) != 0)
    if (errno != EINTR) return false;
  return true;
}

/// To read suffices for flock(2), and is what other users may. O_CREAT would be refused where the file is
/// theirs.
int open_for_all(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  while (true) {
    int fd = open(path.c_str(), kFlags);
    if (fd >= 0 || errno != ENOENT) return fd;
    fd = open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0444);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd >= 0) fchmod(fd, 0444); // whatever the umask
    return fd;
  }
}

std::string user_of(pid_t process) {
  struct stat info = {};
  if (stat(("/proc/" + std::to_string(process)).c_str(), &info) != 0) return "unknown";
  const passwd* user = getpwuid(info.st_uid);
  return user ? user->pw_name : "with the number " + std::to_string(info.st_uid);
}

} // namespace

std::string host_lock_path(const std::string& name) {
  const std::string path = "/tmp/" + name;
  const int fd = open_for_all(path);
  if (fd >= 0) {
    close(fd);
    return path;
  }
  const std::string why = std::strerror(errno), own = machine_lock_dir() + "/" + name;
  static std::string told;
  if (std::exchange(told, path) != path)
    std::fprintf(stderr, "deepgen: %s: %s; %s is used instead, for which other users do not wait\n",
                 path.c_str(), why.c_str(), own.c_str());
  return own;
}

std::string lock_holder(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return "";
  char file[80]; // 1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF
  std::snprintf(file, sizeof file, " %02x:%02x:%ju 0 EOF", major(info.st_dev), minor(info.st_dev),
                uintmax_t(info.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    int process = 0;
    if (line.find(file) == std::string::npos ||
        std::sscanf(line.c_str(), "%*d: FLOCK ADVISORY %*s %d", &process) != 1)
      continue;
    if (process <= 0) return "a process of another container";
    std::ifstream names("/proc/" + std::to_string(process) + "/comm");
    std::string name;
    std::getline(names, name);
    return "process " + std::to_string(process) + (name.empty() ? "" : " (" + name + ")") + " of user " +
           user_of(process);
  }
  return "";
}

FileLock::FileLock(const std::string& path, Mode mode) {
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) throw Error("cannot open lock file", path, std::strerror(errno));
  if (wait_for(fd_, mode == kExclusive ? LOCK_EX : LOCK_SH)) return;
  const std::string why = std::strerror(errno);
  close(fd_);
  throw Error("cannot lock file", path, why);
}

std::optional<FileLock> FileLock::of_folder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw Error("cannot open folder", folder, std::strerror(errno));
  if (wait_for(fd, LOCK_EX)) return FileLock(fd);
  const int error = errno;
  close(fd);
  if (error == EBADF || error == EOPNOTSUPP || error == ENOLCK)
    return std::nullopt; // NFS wants a writable file
  throw Error("cannot lock folder", folder, std::strerror(error));
}

FileLock FileLock::of_host(const std::string& name) {
  return std::move(*lock_of_host(host_lock_path(name), LOCK_EX));
}

std::optional<FileLock> FileLock::try_of_host(const std::string& name) {
  return lock_of_host(host_lock_path(name), LOCK_EX | LOCK_NB);
}

/// Empty where LOCK_NB is asked for and another has it.
std::optional<FileLock> FileLock::lock_of_host(const std::string& path, int operation) {
  while (true) {
    const int fd = open_for_all(path);
    if (fd < 0)
      throw Error("cannot open the lock file of this host", path, std::strerror(errno), "remove it");
    struct stat held = {}, named = {};
    if (!wait_for(fd, operation) || fstat(fd, &held) != 0) {
      const int error = errno;
      close(fd);
      if (error == EWOULDBLOCK) return std::nullopt;
      const std::string why = std::strerror(error);
      throw Error("cannot lock file", path, why);
    }
    if (stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev)
      return FileLock(fd);
    close(fd); // somebody cleaned /tmp up meanwhile
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

Turn Turn::compile_turn() {
  const std::string dir = machine_lock_dir();
  FileLock gate(dir + "/gate", FileLock::kExclusive); // who wants quiet holds it, until the quiet is over
  std::vector<FileLock> held;
  held.emplace_back(dir + "/work", FileLock::kShared);
  return Turn(std::move(held));
}

Turn Turn::quiet_turn(FileLock::Mode mode) {
  const std::string dir = machine_lock_dir();
  std::vector<FileLock> held;
  held.emplace_back(dir + "/gate", mode);
  FileLock drained(dir + "/work",
                   FileLock::kExclusive); // no compile runs now, nor begins while the gate is held
  return Turn(std::move(held));
}

} // namespace deepgen
