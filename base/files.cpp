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

constexpr const char* kTemporary = ".tmp"; ///< then 8 hexadecimal digits

/// A new file beside `path`, removed again unless renamed. As mkstemp(3), since process ids repeat where containers share
/// a folder, but with the mode that the umask gives: mkstemp's is 0600, and umask(2) cannot be read without changing it
/// for all threads. Locked to the end, which tells it from what a killed process left.
class Temporary {
public:
  explicit Temporary(const std::string& path) : path_(path) {
    for (int attempt = 0; attempt < 100 && !create() && errno == EEXIST; ++attempt) {
    }
    if (fd_ < 0) fail(errno);
  }
  ~Temporary() {
    if (!renamed_) unlink(name_.c_str());
    if (fd_ >= 0) close(fd_);
  }
  Temporary(const Temporary&) = delete;

  void write(const std::string& content) {
    if (!write_all(fd_, content)) fail(errno);
    // Some file systems report a full disk when a descriptor is closed. The other one keeps the lock.
    const int other = dup(fd_);
    if (other < 0 || close(other) != 0) fail(errno);
  }

  void rename() {
    if (::rename(name_.c_str(), path_.c_str()) != 0) fail(errno);
    renamed_ = true;
  }

private:
  bool create() {
    char suffix[16];
    std::snprintf(suffix, sizeof suffix, "%s%08x", kTemporary, random_());
    name_ = path_ + suffix;
    fd_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ < 0) return false;
    flock(fd_, LOCK_EX); // where it fails it fails for remove_abandoned() too
    struct stat info = {};
    if (fstat(fd_, &info) == 0 && info.st_nlink > 0) return true;
    close(fd_), fd_ = -1, errno = EEXIST; // taken for abandoned before it was locked
    return false;
  }
  /// No destructor runs for an object whose constructor throws, and then there is no file either.
  [[noreturn]] void fail(int error) const {
    throw Error("cannot write file", path_, std::strerror(error), "check the folder's permissions and the free space");
  }

  std::string path_, name_;
  std::random_device random_;
  int fd_ = -1;
  bool renamed_ = false;
};

/// Removes the temporary files of `path` whose writers were killed: nobody has them locked.
void remove_abandoned(const fs::path& path) {
  const std::string prefix = path.filename().string() + kTemporary;
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (it->path().filename().string().rfind(prefix, 0) != 0) continue;
    const int fd = open(it->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(it->path().c_str());
    close(fd);
  }
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
  const fs::path target(path);
  std::error_code status;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), status);
  if (status)
    throw Error("cannot create the folder of a file", path, status.message(),
                "check the folder's permissions and the free space");
  remove_abandoned(target);
  Temporary temporary(path);
  temporary.write(content);
  temporary.rename();
}

bool write_if_changed(const std::string& path, const std::string& content) {
  if (!file_exists(path) || read_file(path) != content) {
    write_atomically(path, content);
    return true;
  }
  remove_abandoned(path);
  return false;
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
  FileLock gate(dir + "/gate", FileLock::kExclusive); // who wants quiet holds it, until the quiet is over
  std::vector<FileLock> held;
  held.emplace_back(dir + "/work", FileLock::kShared);
  return Turn(std::move(held));
}

Turn Turn::quiet_turn(FileLock::Mode mode) {
  const std::string dir = machine_lock_dir();
  std::vector<FileLock> held;
  held.emplace_back(dir + "/gate", mode);
  FileLock drained(dir + "/work", FileLock::kExclusive); // no compile runs now, nor begins while the gate is held
  return Turn(std::move(held));
}

} // namespace deepgen
