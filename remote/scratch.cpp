#include "remote/scratch.h"

#include "base/text/error.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr const char* kPrefix = "deepgen-work-"; ///< then the user's number, '-' and six characters

std::string prefix() { return kPrefix + std::to_string(geteuid()) + "-"; }

std::string place() {
  std::error_code failure;
  const fs::path folder = fs::temp_directory_path(failure);
  return failure ? "/tmp" : folder.string();
}

void remove_all(const std::string& path) {
  std::error_code ignored; // what is left is for the next worker
  fs::remove_all(path, ignored);
}

/// The lock is on the folder itself: no file of ours is in it, and a name that is removed frees nothing.
int lock_folder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

void remove_abandoned() {
  std::error_code failure;
  const std::string ours = prefix();
  for (fs::directory_iterator it(place(), failure), end; !failure && it != end; it.increment(failure)) {
    if (!it->path().filename().string().starts_with(ours)) continue;
    struct stat info = {};
    if (lstat(it->path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) continue;
    const int fd = lock_folder(it->path().string());
    if (fd < 0) continue;
    remove_all(it->path().string());
    close(fd);
  }
}

} // namespace

Scratch::Scratch() {
  remove_abandoned();
  // Whoever finds the folder before it is locked takes it for abandoned: then another one is made.
  for (int attempt = 0; attempt < 100 && lock_ < 0; ++attempt) {
    path_ = place() + "/" + prefix() + "XXXXXX";
    if (!mkdtemp(path_.data()))
      throw HostFault("a worker cannot make its folder", path_, std::strerror(errno),
                      "free space there, or set TMPDIR on that host");
    lock_ = lock_folder(path_);
    if (lock_ >= 0 && access(path_.c_str(), F_OK) == 0) break;
    if (lock_ >= 0) close(lock_), lock_ = -1;
  }
  if (lock_ < 0)
    throw HostFault("a worker cannot lock its folder", path_, std::strerror(errno),
                    "set TMPDIR on that host to a folder on a local disk");
  start_janitor();
}

void Scratch::start_janitor() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return; // the next worker removes what is left
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
    close(ends[1]);
    // Whoever waits for the end of the worker's output must not wait for this process, nor for its lock.
    const int null = open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) dup2(null, fd);
    close(lock_);
    char byte;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
    remove_all(path_);
    _exit(0);
  }
  close(ends[0]);
  if (pid < 0)
    close(ends[1]);
  else
    alive_ = ends[1], janitor_ = pid;
}

Scratch::~Scratch() {
  remove_all(path_);
  if (alive_ >= 0) close(alive_);
  if (janitor_ > 0)
    while (waitpid(janitor_, nullptr, 0) < 0 && errno == EINTR) {
    }
  close(lock_);
}

} // namespace deepgen
