#include "base/files.h"

#include "base/error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

bool write_all(int fd, const std::string& content) {
  for (size_t at = 0; at < content.size();) {
    const ssize_t n = write(fd, content.data() + at, content.size() - at);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) at += size_t(n);
  }
  return true;
}

/// A new file beside `path`. As mkstemp(3), since process ids repeat where containers share a folder, but with the
/// mode that the umask gives: mkstemp's is 0600, and umask(2) cannot be read without changing it for all threads.
std::string write_temporary(const std::string& path, const std::string& content) {
  std::random_device random;
  std::string temporary;
  int fd = -1;
  for (int attempt = 0; fd < 0 && attempt < 100; ++attempt) {
    char suffix[16];
    std::snprintf(suffix, sizeof suffix, ".tmp%08x", random());
    temporary = path + suffix;
    fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno != EEXIST) break;
  }
  int error = fd < 0 || !write_all(fd, content) ? errno : 0;
  if (fd >= 0 && close(fd) != 0 && error == 0) error = errno;
  if (error == 0) return temporary;
  if (fd >= 0) unlink(temporary.c_str());
  throw Error("cannot write file", path, std::strerror(error), "check the folder's permissions and the free space");
}

/// Waits until flock(2) has it; false on an error.
bool wait_for(int fd, int operation) {
  while (flock(fd, operation) != 0)
    if (errno != EINTR) return false;
  return true;
}

} // namespace

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in) throw Error("cannot read file", path, std::strerror(errno));
  return std::move(text).str();
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void write_atomically(const std::string& path, const std::string& content) {
  fs::path target(path);
  std::error_code status;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), status);
  const std::string temporary = write_temporary(path, content);
  fs::rename(temporary, target, status);
  if (status) {
    const std::string why = status.message();
    fs::remove(temporary, status);
    throw Error("cannot replace file", path, why);
  }
}

bool write_if_changed(const std::string& path, const std::string& content) {
  if (file_exists(path) && read_file(path) == content) return false;
  write_atomically(path, content);
  return true;
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
  if (error == EBADF || error == EOPNOTSUPP || error == ENOLCK) return std::nullopt; // NFS wants a writable file
  throw Error("cannot lock folder", folder, std::strerror(error));
}

FileLock FileLock::of_host(const std::string& name) {
  return std::move(*lock_of_host(name, LOCK_EX));
}

std::optional<FileLock> FileLock::try_of_host(const std::string& name) { return lock_of_host(name, LOCK_EX | LOCK_NB); }

/// Empty where LOCK_NB is asked for and another has it.
std::optional<FileLock> FileLock::lock_of_host(const std::string& name, int operation) {
  const std::string path = "/tmp/" + name;
  // To read suffices for flock(2), and is what other users may. O_CREAT would be refused where the file is theirs.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  while (true) {
    int fd = open(path.c_str(), kFlags);
    if (fd < 0 && errno == ENOENT) {
      fd = open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0444);
      if (fd < 0 && errno == EEXIST) continue;
      if (fd >= 0) fchmod(fd, 0444); // whatever the umask
    }
    if (fd < 0) throw Error("cannot open the lock file of this host", path, std::strerror(errno), "remove it");
    struct stat held = {}, named = {};
    if (!wait_for(fd, operation) || fstat(fd, &held) != 0) {
      const int error = errno;
      close(fd);
      if (error == EWOULDBLOCK) return std::nullopt;
      const std::string why = std::strerror(error);
      throw Error("cannot lock file", path, why);
    }
    if (stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev) return FileLock(fd);
    close(fd); // somebody cleaned /tmp up meanwhile
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

std::string machine_lock_dir() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  fs::path dir = runtime && *runtime && access(runtime, W_OK) == 0
                     ? fs::path(runtime) / "deepgen"
                     : fs::path("/tmp") / ("deepgen-" + std::to_string(getuid()));
  mkdir(dir.c_str(), 0700);
  struct stat info;
  if (lstat(dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != getuid())
    throw Error("cannot use the folder for machine-wide locks", dir.string(),
                "it is not a folder that belongs to this user", "remove it, or set XDG_RUNTIME_DIR");
  return dir.string();
}

Turn Turn::compile_turn() {
  const std::string dir = machine_lock_dir();
  FileLock gate(dir + "/gate", FileLock::kShared); // closed while somebody waits for quiet
  std::vector<FileLock> held;
  held.emplace_back(dir + "/work", FileLock::kShared);
  return Turn(std::move(held));
}

Turn Turn::quiet_turn() {
  const std::string dir = machine_lock_dir();
  std::vector<FileLock> held;
  held.emplace_back(dir + "/gate", FileLock::kExclusive);
  held.emplace_back(dir + "/work", FileLock::kExclusive);
  return Turn(std::move(held));
}

} // namespace deepgen
