#include "measure/process/awake.h"

#include "base/files/patience.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <new>
#include <sys/mman.h>

namespace deepgen::awake {
namespace {

double now() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// What the process and its workers see in common.
struct Shared {
  std::atomic<double> stopped{0}, tick{now()};
};
static_assert(std::atomic<double>::is_always_lock_free);

Shared& shared() {
  static Shared* const here = [] {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? new Shared
                                : new (memory) Shared; // without the page, a worker's clock goes on
  }();
  return *here;
}

bool follows = false;

} // namespace

void begin() { shared().tick = now(); }

void tick() {
  Shared& s = shared();
  const double time = now(), gap = time - s.tick - 2 * Patience::slice;
  if (gap > 0)
    s.stopped = s.stopped + gap; // first: a worker that looks in between must not see its time gone
  s.tick = time;
}

void follow() { follows = true; }

double seconds() {
  const Shared& s = shared();
  const double time = now();
  return (follows ? std::min(time, s.tick + 2 * Patience::slice) : time) - s.stopped;
}

} // namespace deepgen::awake
