// What all processes that use a cache count together.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace deepgen {

enum class CacheKind { kernel, verdict, time };
inline constexpr std::array<const char*, 3> kCacheKinds = {"kernel", "verdict", "time"};

struct CacheCounters {
  struct Kind {
    int64_t hits = 0, misses = 0, stored = 0;
  };
  std::array<Kind, kCacheKinds.size()> kinds; ///< by CacheKind
  int64_t evicted = 0, damaged = 0;
  /// Of the last use, in nanoseconds: the wall clock's time, but later than every stamp before it whatever
  /// the clock does.
  int64_t stamp = 0;
  int64_t bytes = -1; ///< of all entries and of those that are being written; -1: has to be counted
};

/// Lets `change` alter the counters in the file, alone among all processes; creates file and folder. In place
/// and in one write, so that no death of a process loses more than its own change; what is not as it was
/// written starts anew. False where the file cannot be written.
bool update_counters(const std::string& path, const std::function<void(CacheCounters&)>& change);
CacheCounters read_counters(const std::string& path);

} // namespace deepgen
