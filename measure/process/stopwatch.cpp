#include "measure/process/stopwatch.h"

#include "measure/process/awake.h"

#include <cstdio>
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

namespace deepgen {
namespace {

double read_clock(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Seconds that the hypervisor gave to others, all CPUs together.
double steal_seconds(int stat) {
  char text[512];
  const ssize_t size = stat >= 0 ? pread(stat, text, sizeof text - 1, 0) : 0;
  if (size <= 0) return 0;
  text[size] = 0;
  unsigned long long steal = 0;
  std::sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal);
  return double(steal) / double(sysconf(_SC_CLK_TCK));
}

} // namespace

double wall_seconds() { return awake::seconds(); }
double thread_cpu_seconds() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

// Files stay open: a confined process opens none.
Stopwatch::Stopwatch()
    : schedstat_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)),
      stat_(open("/proc/stat", O_RDONLY | O_CLOEXEC)) {
  // On hosts with many CPUs the kernel takes long to format /proc/stat; those are rarely virtual.
  constexpr double kCheap = 200e-6;
  const double start = read_clock(CLOCK_MONOTONIC);
  steal_seconds(stat_);
  read_steal_ = read_clock(CLOCK_MONOTONIC) - start < kCheap;
}

Stopwatch::~Stopwatch() {
  for (int file : {schedstat_, stat_})
    if (file >= 0) close(file);
}

double Stopwatch::stolen() const { return read_steal_ ? steal_seconds(stat_) : 0; }

Stopwatch::Disturbance Stopwatch::read(bool steal) const {
  Disturbance d;
  char text[128];
  const ssize_t size = schedstat_ >= 0 ? pread(schedstat_, text, sizeof text - 1, 0) : 0;
  unsigned long long delay = 0;
  if (size > 0) {
    text[size] = 0;
    std::sscanf(text, "%*u %llu", &delay);
    d.run_delay = 1e-9 * double(delay);
  } else {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    d.preemptions = usage.ru_nivcsw;
  }
  if (steal) d.steal = stolen();
  return d;
}

Sample Stopwatch::time(const std::function<void()>& call, int64_t calls, bool steal) const {
  constexpr double kDelayShare = 0.005, kTick = 0.011;
  const Disturbance before = read(steal);
  const double wall = read_clock(CLOCK_MONOTONIC), cpu = thread_cpu_seconds();
  for (int64_t i = 0; i < calls; ++i) call();
  const double cpu_time = thread_cpu_seconds() - cpu, wall_time = read_clock(CLOCK_MONOTONIC) - wall;
  const Disturbance after = read(steal);
  const bool clean = after.run_delay - before.run_delay <= kDelayShare * wall_time &&
                     after.preemptions == before.preemptions && after.steal - before.steal <= kTick;
  return {cpu_time / double(calls), clean};
}

} // namespace deepgen
