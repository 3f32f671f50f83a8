#include "base/files/cache_counters.h"

#include "base/files/private_folder.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <string>
#include <sys/file.h>
#include <unistd.h>
#include <vector>

namespace deepgen {
namespace {

constexpr const char* kCountersSchema = "deepgen.cache-counters/1";
constexpr size_t kMost = 1024; ///< bytes of the file

std::vector<int64_t*> fields(CacheCounters& c) {
  std::vector<int64_t*> all = {&c.stamp, &c.bytes, &c.evicted, &c.damaged};
  for (CacheCounters::Kind& kind : c.kinds) all.insert(all.end(), {&kind.hits, &kind.misses, &kind.stored});
  return all;
}

/// Of one length whatever the numbers are: a shorter text would leave the end of a longer one behind it.
std::string text_of(CacheCounters c) {
  std::string text = kCountersSchema;
  for (const int64_t* value : fields(c)) {
    char number[32];
    std::snprintf(number, sizeof number, "\n%20lld", static_cast<long long>(*value));
    text += number;
  }
  return text + "\n";
}

CacheCounters parse(const std::string& text) {
  CacheCounters c;
  std::istringstream in(text);
  std::string schema;
  bool good = bool(in >> schema) && schema == kCountersSchema;
  for (int64_t* value : fields(c)) good = good && bool(in >> *value);
  return good ? c : CacheCounters();
}

int open_file(const std::string& path, int flags) {
  int fd = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0 && errno == ENOENT && flags & O_CREAT) {
    create_private_folder(std::filesystem::path(path).parent_path());
    fd = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
  }
  return fd;
}

std::string content(int fd) {
  std::string text(kMost, '\0');
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  text.resize(size > 0 ? size_t(size) : 0);
  return text;
}

/// False where the file system has no locks: then counts may be lost.
bool lock(int fd, int how) {
  int result;
  while ((result = flock(fd, how)) != 0 && errno == EINTR) {
  }
  return result == 0;
}

} // namespace

bool update_counters(const std::string& path, const std::function<void(CacheCounters&)>& change) {
  const int fd = open_file(path, O_RDWR | O_CREAT);
  if (fd < 0) return false;
  lock(fd, LOCK_EX);
  CacheCounters counters = parse(content(fd));
  change(counters);
  const std::string text = text_of(counters);
  const bool written = pwrite(fd, text.data(), text.size(), 0) == ssize_t(text.size());
  close(fd);
  return written;
}

CacheCounters read_counters(const std::string& path) {
  const int fd = open_file(path, O_RDONLY);
  if (fd < 0) return {};
  lock(fd, LOCK_SH);
  const CacheCounters counters = parse(content(fd));
  close(fd);
  return counters;
}

} // namespace deepgen
