#include "generator/lock/lock_file.h"

#include "base/files/files.h"
#include "base/files/lock_folder.h"
#include "base/files/locks.h"
#include "base/text/error.h"
#include "generator/search/seeded.h"

#include <cstdio>
#include <filesystem>

namespace deepgen {
namespace {

/// Replacing a file cuts it off from its hard links. Writing into it instead could leave half a lock.
void warn_of_hard_links(const std::string& path) {
  std::error_code absent;
  if (const auto names = std::filesystem::hard_link_count(path, absent); !absent && names > 1)
    std::fprintf(stderr,
                 "deepgen: %s had %ju names (hard links): this one is a new file now, the others keep the "
                 "old content\n",
                 path.c_str(), names);
}

std::string machine_lock(const std::string& path) {
  char name[40]; // the same file must give the same name in every program
  std::snprintf(name, sizeof name, "/lock-%016llx", static_cast<unsigned long long>(fnv1a(path)));
  return machine_lock_dir() + name;
}

/// The lock of the folder holds across containers, whose machine_lock_dir() may differ.
FileLock merge_turn(const std::string& real) {
  const std::filesystem::path folder = std::filesystem::path(real).parent_path();
  std::error_code ignored; // what cannot be created cannot be opened either
  std::filesystem::create_directories(folder, ignored);
  if (std::optional<FileLock> turn = FileLock::of_folder(folder)) return std::move(*turn);
  return FileLock(machine_lock(real), FileLock::kExclusive);
}

} // namespace

/// weakly_canonical() stops at a dangling link.
std::string real_path(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path file = path;
  std::error_code failure;
  for (int links = 0; fs::is_symlink(fs::symlink_status(file, failure)); ++links) {
    if (links == 40) throw Error("too many symbolic links", path);
    file = file.parent_path() / fs::read_symlink(file, failure);
  }
  const fs::path whole = fs::absolute(file, failure),
                 real = failure ? whole : fs::weakly_canonical(whole, failure);
  if (failure)
    throw Error("cannot follow a path", path, failure.message(), "check the permissions of its folders");
  return real.string(); // it has a folder, then
}

bool change_lock(const std::string& path, const std::function<void(Lock&, const std::string& real)>& change) {
  const std::string real = real_path(path);
  const FileLock turn = merge_turn(real);
  Lock lock = Lock::read(real);
  const std::string before = lock.serialize();
  change(lock, real);
  const std::string after = lock.serialize();
  if (after == before) return false;
  warn_of_hard_links(real);
  return write_if_changed(real, after);
}

} // namespace deepgen
