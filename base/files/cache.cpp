#include "base/files/cache.h"

#include "base/files/files.h"
#include "base/files/patience.h"
#include "base/files/private_folder.h"
#include "base/text/error.h"
#include "base/text/sha256.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr const char* kEntrySchema = "deepgen.cache-entry/1";
constexpr const char* kTemporaries = "/tmp";
constexpr int64_t kBlock = 4096;

/// What a file takes on disk, about. Small entries would otherwise pass for nothing.
int64_t disk_bytes(int64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

/// Eviction goes on until there is room for a while.
int64_t room(int64_t limit) { return limit - limit / 10; }

struct File {
  explicit File(int descriptor) : fd(descriptor) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  int fd;
};

bool lock_now(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }

/// Waits for whoever counts or evicts, but not for one that is stopped: what is not stored is compiled again.
bool lock_soon(int fd) {
  constexpr double kSeconds = 1;
  constexpr useconds_t kBetween = 2000;
  for (Patience patience(kSeconds); !lock_now(fd); usleep(kBetween))
    if (patience.left() <= 0) return false;
  return true;
}

/// Of one entry, with its key.
constexpr int64_t kMostOfEntry = kMostBytes;

/// The content of an entry's file; empty, which no entry is, where it is larger than any, or somebody else
/// could have written it.
std::optional<std::string> read_whole(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.fd < 0) return errno == ELOOP ? std::optional("") : std::nullopt;
  struct stat info;
  if (fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kMostOfEntry ||
      !why_not_private(info).empty())
    return "";
  std::string text(size_t(info.st_size), '\0');
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = read(file.fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    at += size_t(n);
  }
  return text;
}

std::string why_refused(const std::string& folder) {
  struct stat info;
  if (folder.empty() || stat(folder.c_str(), &info) != 0) return "";
  const std::string why = why_not_private(info);
  return why.empty() ? ""
                     : why + "; take the right away (chmod go-w) or name another one in DEEPGEN_CACHE_DIR";
}

std::string pack(const std::string& key, const std::string& value) {
  const std::string body = key + value;
  return std::string(kEntrySchema) + " " + std::to_string(key.size()) + " " + std::to_string(value.size()) +
         " " + sha256_hex(body) + "\n" + body;
}

std::optional<std::string> unpack(const std::string& content, const std::string& key) {
  const size_t line = content.find('\n');
  if (line == std::string::npos || content.size() - line - 1 < key.size()) return std::nullopt;
  const size_t value = line + 1 + key.size();
  if (content.compare(line + 1, key.size(), key) != 0) return std::nullopt;
  std::string found = content.substr(value);
  if (pack(key, found).compare(0, line + 1, content, 0, line + 1) != 0) return std::nullopt;
  return found;
}

void set_stamp(int fd, int64_t stamp) {
  const timespec time = {time_t(stamp / 1000000000), long(stamp % 1000000000)};
  const timespec both[2] = {time, time};
  futimens(fd, both);
}

int64_t stamp_of(const struct stat& info) {
  return int64_t(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec;
}

bool is_hex(const std::string& name, size_t digits) {
  return name.size() == digits && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

struct Entry {
  std::string path;
  size_t kind;
  int64_t bytes, stamp;
};

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  return names;
}

/// Only what looks like an entry: somebody else's folder may have been named by mistake.
std::vector<Entry> entries_in(const std::string& folder) {
  std::vector<Entry> entries;
  for (size_t kind = 0; kind < kCacheKinds.size(); ++kind) {
    const std::string top = folder + "/" + kCacheKinds[kind];
    for (const std::string& first : names_in(top)) {
      if (!is_hex(first, 2)) continue;
      for (const std::string& rest : names_in(top + "/" + first)) {
        Entry e{top + "/" + first + "/" + rest, kind, 0, 0};
        struct stat info;
        if (!is_hex(rest, 62) || lstat(e.path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
        e.bytes = disk_bytes(info.st_size), e.stamp = stamp_of(info);
        entries.push_back(std::move(e));
      }
    }
  }
  return entries;
}

/// What killed writers have left. A living one has its file locked.
void sweep_temporaries(const std::string& folder) {
  for (const std::string& name : names_in(folder + kTemporaries)) {
    if (!is_hex(name, 16)) continue;
    const std::string path = folder + kTemporaries + "/" + name;
    const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.fd >= 0 && lock_now(file.fd)) unlink(path.c_str());
  }
}

/// A new file among the temporaries of the cache, locked as long as it is open. Creates the folders.
int create_temporary(const std::string& cache, std::string& path) {
  const std::string folder = cache + kTemporaries;
  std::random_device random;
  int fd = -1;
  for (int attempt = 0; fd < 0 && attempt < 100; ++attempt) {
    char name[20];
    std::snprintf(name, sizeof name, "/%08x%08x", random(), random());
    path = folder + name;
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 || errno == EEXIST) continue;
    if (errno != ENOENT || !create_private_folder(cache) || !create_private_folder(folder)) break;
  }
  const int error = errno;
  if (fd >= 0) lock_now(fd);
  errno = error;
  return fd;
}

bool write_fully(int fd, const std::string& content) {
  for (size_t at = 0; at < content.size();) {
    const ssize_t n = ::write(fd, content.data() + at, content.size() - at);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) at += size_t(n);
  }
  return true;
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const std::string units = "KMGT";
  const size_t power = unit.empty() ? 0 : units.find(unit[0]) + 1;
  const double bytes = number * double(int64_t(1) << 10 * power);
  if (end == text.c_str() || !(number >= 0) || unit.size() > 1 || (!unit.empty() && power == 0) ||
      bytes > 1e18)
    throw Error("not a size: '" + text + "'", "DEEPGEN_CACHE_SIZE", "",
                "bytes, or a number with K, M, G or T: 500M");
  return int64_t(bytes);
}

std::string default_folder() {
  if (const char* folder = variable("DEEPGEN_CACHE_DIR")) return folder;
  if (const char* caches = variable("XDG_CACHE_HOME"); caches && *caches == '/')
    return std::string(caches) + "/deepgen";
  if (const char* home = variable("HOME"); home && *home == '/') return std::string(home) + "/.cache/deepgen";
  return "";
}

} // namespace

CacheSettings CacheSettings::from_environment(const std::string& folder) {
  CacheSettings settings;
  const std::string use = variable("DEEPGEN_CACHE") ? variable("DEEPGEN_CACHE") : "on";
  if (use == "off") return settings;
  if (use != "on")
    throw Error("not a setting of the cache: '" + use + "'", "DEEPGEN_CACHE", "", "on, or off");
  if (const char* size = variable("DEEPGEN_CACHE_SIZE")) settings.limit = parse_size(size);
  settings.folder = folder.empty() ? default_folder() : folder;
  if (!settings.folder.empty() && settings.folder[0] != '/')
    throw Error("the cache's folder is no absolute path: '" + settings.folder + "'",
                folder.empty() ? "DEEPGEN_CACHE_DIR" : "--cache",
                "commands of a build run in different folders", "write the path from / on");
  return settings;
}

int64_t CacheStats::entries() const {
  int64_t sum = 0;
  for (const Kind& kind : kinds) sum += kind.entries;
  return sum;
}

int64_t CacheStats::bytes() const {
  int64_t sum = 0;
  for (const Kind& kind : kinds) sum += kind.bytes;
  return sum;
}

int64_t Cache::wall_clock() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

Cache::Cache(CacheSettings settings, int64_t (*clock)())
    : settings_(std::move(settings)), clock_(clock), why_refused_(deepgen::why_refused(settings_.folder)) {}

std::string Cache::path(CacheKind kind, const std::string& key) const {
  const std::string hash = sha256_hex(key);
  return settings_.folder + "/" + kCacheKinds[size_t(kind)] + "/" + hash.substr(0, 2) + "/" + hash.substr(2);
}

bool Cache::update(const std::function<void(CacheCounters&)>& change) {
  return update_counters(counters_path(), [&](CacheCounters& c) {
    c.stamp = std::max(clock_(), c.stamp + 1);
    change(c);
  });
}

std::optional<std::string> Cache::find(CacheKind kind, const std::string& key) {
  if (!on()) return std::nullopt;
  const std::string file = path(kind, key);
  const std::optional<std::string> content = read_whole(file);
  std::optional<std::string> value = content ? unpack(*content, key) : std::nullopt;
  const bool damaged = content && !value;
  if (damaged) unlink(file.c_str());
  int64_t stamp = 0;
  const bool counted = update([&](CacheCounters& c) {
    (value ? c.kinds[size_t(kind)].hits : c.kinds[size_t(kind)].misses)++;
    c.damaged += damaged;
    stamp = c.stamp;
  });
  if (!value || !counted) return value;
  if (const File used(open(file.c_str(), O_RDONLY | O_CLOEXEC)); used.fd >= 0) set_stamp(used.fd, stamp);
  return value;
}

void Cache::store(CacheKind kind, const std::string& key, const std::string& value) {
  if (!on() || failed_) return;
  const std::string content = pack(key, value);
  const int64_t bytes = disk_bytes(int64_t(content.size()));
  if (bytes > std::min(kMostOfEntry, room(settings_.limit))) return;
  int64_t stamp = 0;
  // Counted before it is written: who dies in between leaves a sum that is too large, which the next eviction
  // mends.
  const auto admitted = [&] {
    bool fits = false;
    update([&](CacheCounters& c) {
      fits = c.bytes >= 0 && c.bytes + bytes <= settings_.limit;
      if (fits) c.bytes += bytes, c.kinds[size_t(kind)].stored++, stamp = c.stamp;
    });
    return fits;
  };
  if (admitted()) return write(path(kind, key), content, stamp);
  make_room(bytes);
  if (admitted()) write(path(kind, key), content, stamp);
}

/// Through a temporary file, not synced to disk: what a loss of power tears fails its checksum.
void Cache::write(const std::string& target, const std::string& content, int64_t stamp) {
  std::string temporary;
  const File file(create_temporary(settings_.folder, temporary));
  bool good = file.fd >= 0 && write_fully(file.fd, content);
  if (good) {
    set_stamp(file.fd, stamp);
    create_private_folder(fs::path(target).parent_path());
    good = rename(temporary.c_str(), target.c_str()) == 0;
  }
  failed_ = !good;
  if (failed_ && file.fd >= 0) unlink(temporary.c_str());
}

/// One process at a time; the others wait a little. Without that the second of two that begin a cache stored
/// nothing.
void Cache::make_room(int64_t wanted) {
  const File turn(
      open((settings_.folder + "/eviction").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (turn.fd < 0 || !lock_soon(turn.fd)) return;
  const int64_t counted = read_counters(counters_path()).bytes;
  if (counted >= 0 && counted + wanted <= settings_.limit) return; // another process has made room
  int64_t before = 0;
  update([&](CacheCounters& c) { before = c.bytes = std::max<int64_t>(c.bytes, 0); });
  sweep_temporaries(settings_.folder);
  std::vector<Entry> entries = entries_in(settings_.folder);
  std::sort(entries.begin(), entries.end(), [](const Entry& x, const Entry& y) { return x.stamp < y.stamp; });
  int64_t bytes = 0, evicted = 0;
  for (const Entry& e : entries) bytes += e.bytes;
  if (bytes + wanted > settings_.limit)
    for (const Entry& e : entries) {
      if (bytes + wanted <= room(settings_.limit)) break;
      struct stat now;
      if (lstat(e.path.c_str(), &now) == 0 && stamp_of(now) != e.stamp) continue; // used meanwhile
      if (unlink(e.path.c_str()) == 0) ++evicted;
      bytes -= e.bytes;
    }
  update([&](CacheCounters& c) {
    c.bytes =
        c.bytes < before ? -1 : bytes + (c.bytes - before); // others have stored meanwhile, or cleared all
    c.evicted += evicted;
  });
}

CacheStats Cache::stats() const {
  CacheStats stats;
  if (!on()) return stats;
  stats.counters = read_counters(counters_path());
  for (const Entry& e : entries_in(settings_.folder))
    stats.kinds[e.kind].entries++, stats.kinds[e.kind].bytes += e.bytes;
  return stats;
}

void Cache::clear() {
  if (!on()) return;
  sweep_temporaries(settings_.folder);
  for (const Entry& e : entries_in(settings_.folder)) unlink(e.path.c_str());
  update([](CacheCounters& c) {
    const int64_t stamp = c.stamp;
    c = {};
    c.stamp = stamp;
  });
}

std::string Cache::why_no_store() {
  if (!on()) return "";
  std::string path;
  const File file(create_temporary(settings_.folder, path));
  if (file.fd < 0) return std::strerror(errno);
  const bool good = write_fully(file.fd, std::string(size_t(kBlock), ' '));
  const std::string why = good ? "" : std::strerror(errno);
  unlink(path.c_str());
  return why;
}

} // namespace deepgen
