// Cache: what earlier builds of this user found out, by content: one file an entry, whose name is the hash of
// its key.
//
// Any number of processes may use it at once and be killed at any time. An entry is written beside its place
// and renamed, carries its key and a checksum, and counts as absent, and is removed, when it is not as it was
// written. Nothing here throws, waits for long or fails a build: a folder that cannot be read is empty, one
// that cannot be written stays as it is. Folder and entries are this user's alone: what others could have
// written is not used.
#pragma once

#include "base/files/cache_counters.h"

#include <optional>
#include <vector>

namespace deepgen {

struct CacheSettings {
  std::string folder;               ///< empty: no cache
  int64_t limit = int64_t(2) << 30; ///< bytes of all entries together

  /// DEEPGEN_CACHE=off, DEEPGEN_CACHE_SIZE, DEEPGEN_CACHE_DIR, else ${XDG_CACHE_HOME:-~/.cache}/deepgen.
  /// `folder` comes before the environment's. Throws Error for a value that has no meaning.
  static CacheSettings from_environment(const std::string& folder = "");
};

struct CacheStats {
  struct Kind {
    int64_t entries = 0, bytes = 0;
  };
  CacheCounters counters;
  std::array<Kind, kCacheKinds.size()> kinds; ///< what is there now
  int64_t entries() const;
  int64_t bytes() const;
};

class Cache {
public:
  static int64_t wall_clock(); ///< in nanoseconds
  explicit Cache(CacheSettings, int64_t (*clock)() = wall_clock);

  const CacheSettings& settings() const { return settings_; }
  bool on() const { return !settings_.folder.empty() && why_refused_.empty(); }
  /// Why the folder is not used although there is one: others can write to it, and what they write would be
  /// run and linked. With the remedy.
  const std::string& why_refused() const { return why_refused_; }

  /// The value that was stored under the key, which then counts as just used.
  std::optional<std::string> find(CacheKind, const std::string& key);
  /// Where the entries become too large together, those whose last use is longest ago go.
  void store(CacheKind, const std::string& key, const std::string& value);

  CacheStats stats() const;
  void clear();               ///< removes all entries and forgets the counts
  std::string why_no_store(); ///< tries it; empty when an entry can be written, or the cache is off

private:
  std::string path(CacheKind, const std::string& key) const;
  std::string counters_path() const { return settings_.folder + "/counters"; }
  bool update(const std::function<void(CacheCounters&)>& change);
  void write(const std::string& path, const std::string& content, int64_t stamp);
  void make_room(int64_t wanted);

  CacheSettings settings_;
  int64_t (*clock_)();
  std::string why_refused_;
  bool failed_ = false; ///< an entry could not be written: no further attempt
};

} // namespace deepgen
