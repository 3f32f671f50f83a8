#include "base/files.h"

#include "base/error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {

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
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(content.data(), std::streamsize(content.size()));
    out.close();
    if (!out) {
      const std::string why = std::strerror(errno);
      fs::remove(temporary, status);
      throw Error("cannot write file", path, why, "check the folder's permissions and the free space");
    }
  }
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
  while (flock(fd_, mode == kExclusive ? LOCK_EX : LOCK_SH) != 0)
    if (errno != EINTR) {
      const std::string why = std::strerror(errno);
      close(fd_);
      throw Error("cannot lock file", path, why);
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
