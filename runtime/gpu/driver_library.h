// A vendor's driver, found once in a process; and a library that is not there told from one that the host
// could not load this time, for lack of memory or of file descriptors. Internal.
#pragma once

#include "runtime/core/abi.h"

#include <atomic>
#include <pthread.h>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

enum class Lookup {
  found,
  absent,  ///< or there, and too old: for as long as the process runs
  broken,  ///< there, and does not load: somebody may mend it
  not_now, ///< the host was short of something
};

/// dlopen(). In `lookup` is what it says of the name, or what another name said before that is worse.
void* open_library(const char* name, int flags, Lookup& lookup);

/// The status of a call without a driver, kept for deepgen_last_driver_error() when it is
/// DEEPGEN_ERROR_DRIVER.
deepgen_status without_driver(Lookup);

/// A driver is looked for until it is found, or known not to be there. Whatever else keeps it away, the next
/// call tries again.
template <typename Driver>
class DriverSearch {
public:
  using Load = Lookup (*)(const Driver*&);

  /// Null where there is none, and `lookup` says why.
  const Driver* get(Load load, Lookup* lookup = nullptr) {
    Lookup last = last_.load(std::memory_order_acquire);
    if (last == Lookup::broken || last == Lookup::not_now) {
      pthread_mutex_lock(&mutex_);
      last = last_.load(std::memory_order_relaxed);
      if (last == Lookup::broken || last == Lookup::not_now) {
        last = load(driver_);
        last_.store(last, std::memory_order_release);
      }
      pthread_mutex_unlock(&mutex_);
    }
    if (lookup) *lookup = last;
    return last == Lookup::found ? driver_ : nullptr;
  }

private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<Lookup> last_{Lookup::not_now};
  const Driver* driver_ = nullptr; ///< written before `found` is
};

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
