#include "base/files/files.h"

#include "base/text/error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/auxv.h>
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
constexpr size_t kDigits = 8;
constexpr const char* kSpace = "check the folder's permissions and the free space";

/// When this process began, on the clock of file times.
timespec now_of_files() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now;
}
const timespec kBegan = now_of_files();

class Descriptor {
public:
  Descriptor(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

private:
  int fd_;
};

std::string kind_of(mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/// To the end of the file or to `most` + 1 bytes; false with errno on an error.
bool read_to_end(int fd, int64_t most, std::string& text) {
  char buffer[1 << 16];
  while (int64_t(text.size()) <= most) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == 0) return true;
    if (n > 0)
      text.append(buffer, size_t(n));
    else if (errno != EINTR)
      return false;
  }
  return true;
}

/// A new file beside `path`, removed again unless renamed. As mkstemp(3), since process ids repeat where
/// containers share a folder, but with the mode that the umask gives: mkstemp's is 0600, and umask(2) cannot
/// be read without changing it for all threads. Locked to the end, which tells it from what a killed process
/// left.
class Temporary {
public:
  explicit Temporary(const std::string& path) : path_(path) {
    struct stat old = {};
    const bool exists = stat(path.c_str(), &old) == 0;
    if (exists && !S_ISREG(old.st_mode))
      throw Error("cannot write file", path, "it is " + kind_of(old.st_mode), "name a regular file");
    for (int attempt = 0; attempt < 100 && !create() && errno == EEXIST; ++attempt) {
    }
    if (fd_ < 0) fail(errno);
    if (exists) take_over(old);
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
  /// Mode, owner and group of the file that is replaced. Where the group cannot be kept, its rights are for
  /// nobody else.
  void take_over(const struct stat& old) {
    struct stat own = {};
    if (fstat(fd_, &own) != 0) return;
    mode_t mode = old.st_mode & 0777;
    const bool owner_differs = own.st_uid != old.st_uid, group_differs = own.st_gid != old.st_gid;
    if ((owner_differs || group_differs) && fchown(fd_, old.st_uid, old.st_gid) != 0 && group_differs &&
        fchown(fd_, uid_t(-1), old.st_gid) != 0)
      mode = (mode & 0707) | ((mode & 07) << 3);
    fchmod(fd_, mode);
  }
  bool create() {
    char suffix[16];
    std::snprintf(suffix, sizeof suffix, "%s%08x", kTemporary, random_());
    name_ = path_ + suffix;
    fd_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) return false;
    flock(fd_, LOCK_EX); // where it fails it fails for remove_abandoned() too
    struct stat info = {};
    if (fstat(fd_, &info) == 0 && info.st_nlink > 0) return true;
    close(fd_), fd_ = -1, errno = EEXIST; // taken for abandoned before it was locked
    return false;
  }
  /// No destructor runs for an object whose constructor throws, and then there is no file either.
  [[noreturn]] void fail(int error) const {
    throw Error("cannot write file", path_, std::strerror(error), kSpace);
  }

  std::string path_, name_;
  std::random_device random_;
  int fd_ = -1;
  bool renamed_ = false;
};

bool is_temporary_of(const std::string& target, const std::string& name) {
  const std::string prefix = target + kTemporary;
  return name.size() == prefix.size() + kDigits && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
}

bool older_than_this_process(const struct stat& file) {
  const timespec& t = file.st_mtim;
  return t.tv_sec < kBegan.tv_sec || (t.tv_sec == kBegan.tv_sec && t.tv_nsec < kBegan.tv_nsec);
}

/// Removes the temporary files of `path` whose writers were killed: they have names as ours, they are older
/// than this process, and nobody has them locked. Other people's files may begin with the same name.
void remove_abandoned(const fs::path& path) {
  const std::string target = path.filename().string();
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (!is_temporary_of(target, it->path().filename().string())) continue;
    const Descriptor file(it->path(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    struct stat info = {};
    if (file.get() < 0 || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
        !older_than_this_process(info))
      continue;
    if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) unlink(it->path().c_str());
  }
}

bool holds(const std::string& path, const std::string& content) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);
  struct stat info = {};
  std::string text;
  return file.get() >= 0 && fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
         size_t(info.st_size) == content.size() && read_to_end(file.get(), info.st_size, text) &&
         text == content;
}

} // namespace

std::string read_file(const std::string& path, int64_t most) {
  const auto fail = [&](const std::string& why, const std::string& remedy) {
    throw Error("cannot read file", path, why, remedy);
  };
  const Descriptor file(path, O_RDONLY | O_NONBLOCK); // or a pipe without a writer would hold it up here
  struct stat info = {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0)
    fail(std::strerror(errno), "correct the path or the permissions of the file and its folders");
  if (!S_ISREG(info.st_mode)) fail("it is " + kind_of(info.st_mode), "name a regular file");
  std::string text;
  if (info.st_size <= most && !read_to_end(file.get(), most, text))
    fail(std::strerror(errno), "check the disk or the network that it lies on; the file itself may be good");
  if (info.st_size > most || int64_t(text.size()) > most)
    fail("it has more than " + std::to_string(most >> 20) + " MiB, as no such file of DeepGen's has",
         "name the right file");
  return text;
}

bool file_exists(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw Error("cannot find out whether a file is there", path, std::strerror(errno),
              "check the permissions of its folders, and the disk or the network that it lies on");
}

void write_atomically(const std::string& path, const std::string& content) {
  const fs::path target(path);
  std::error_code status;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), status);
  if (status) throw Error("cannot create the folder of a file", path, status.message(), kSpace);
  remove_abandoned(target);
  Temporary temporary(path);
  temporary.write(content);
  temporary.rename();
}

bool write_if_changed(const std::string& path, const std::string& content) {
  if (!holds(path, content)) {
    write_atomically(path, content);
    return true;
  }
  remove_abandoned(path);
  return false;
}

std::string own_program() {
  std::error_code failure;
  const fs::path link = fs::read_symlink("/proc/self/exe", failure);
  if (!failure) return link.string();
  const auto* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN)); // as execve(2) was given it
  const fs::path path = started ? fs::canonical(started, failure) : fs::path();
  if (started && !failure) return path.string();
  throw Error("cannot find out this program's own path", "/proc/self/exe", failure.message(),
              "mount /proc, or start the program by its full path");
}

} // namespace deepgen
