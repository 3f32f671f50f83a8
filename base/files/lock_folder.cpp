#include "base/files/lock_folder.h"

#include "base/files/cache.h"
#include "base/text/error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

std::string absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value == '/' ? value : "";
}

std::string cache_folder() {
  try {
    return CacheSettings::from_environment().folder;
  } catch (const Error&) { // a wrong setting of the cache is told where the cache is used
    return "";
  }
}

/// The folder of CMake's cache among the present one and those around it.
std::string build_tree() {
  std::error_code failure;
  for (fs::path at = fs::current_path(failure); !failure && at.has_relative_path(); at = at.parent_path())
    if (fs::exists(at / "CMakeCache.txt", failure)) return at.string();
  return "";
}

/// Whether others may remove or rename what lies in `folder`.
bool open_to_others(const std::string& folder) {
  struct stat info = {};
  return stat(folder.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX);
}

/// Why the folder cannot hold locks; empty when it can. Makes it.
std::string why_not(const std::string& folder) {
  if (open_to_others(fs::path(folder).parent_path()))
    return "others can replace what lies in the folder around it";
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return std::strerror(errno);
  struct stat info = {};
  if (lstat(folder.c_str(), &info) != 0) return std::strerror(errno);
  if (S_ISLNK(info.st_mode)) return "it is a link";
  if (!S_ISDIR(info.st_mode)) return "it is no folder";
  if (info.st_uid != geteuid())
    return "it belongs to the user with the number " + std::to_string(info.st_uid);
  if ((info.st_mode & 077) && chmod(folder.c_str(), 0700) != 0) return std::strerror(errno);
  const int fd = open((folder + "/gate").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return std::strerror(errno);
  close(fd);
  return "";
}

} // namespace

std::vector<std::string> lock_places() {
  const std::string user = std::to_string(geteuid()), own = "/deepgen-" + user;
  std::vector<std::string> places;
  const auto add = [&](const std::string& parent, const std::string& name) {
    if (!parent.empty()) places.push_back(parent + name);
  };
  add(absolute_variable("DEEPGEN_LOCKS"), ""); // of a worker, whose commands have a TMPDIR of their own
  add(absolute_variable("XDG_RUNTIME_DIR"), "/deepgen");
  add("/run/user/" + user, "/deepgen");
  add(absolute_variable("TMPDIR"), own);
  add("/tmp", own);
  add(cache_folder(), "/locks");
  add(build_tree(), "/deepgen-locks");
  return places;
}

LockFolder find_lock_folder(const std::vector<std::string>& places) {
  std::string refused;
  for (const std::string& place : places) {
    struct stat parent = {};
    if (stat(fs::path(place).parent_path().c_str(), &parent) != 0) continue; // not here, and nobody's fault
    const std::string why = why_not(place);
    if (why.empty()) return {place, refused};
    refused += (refused.empty() ? "" : "\n") + place + ": " + why;
  }
  throw Error("no folder can hold the locks that builds on this machine share", "",
              refused.empty() ? "none of the usual places is here" : refused,
              "set XDG_RUNTIME_DIR or TMPDIR to a folder that belongs to you and can be written");
}

LockFolder find_lock_folder() { return find_lock_folder(lock_places()); }

std::string machine_lock_dir() { return find_lock_folder().path; }

} // namespace deepgen
