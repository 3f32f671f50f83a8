#include "measure/process/stopwatch.h"

#include "base/text/error.h"
#include "measure/process/awake.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
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
Stopwatch::Stopwatch() : stat_(open("/proc/stat", O_RDONLY | O_CLOEXEC)) {
  if (const int own = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC); own >= 0)
    schedstats_ = {own};
  // On hosts with many CPUs the kernel takes long to format /proc/stat; those are rarely virtual.
  constexpr double kCheap = 200e-6;
  const double start = read_clock(CLOCK_MONOTONIC);
  steal_seconds(stat_);
  read_steal_ = read_clock(CLOCK_MONOTONIC) - start < kCheap;
}

Stopwatch::~Stopwatch() {
  for (int file : schedstats_) close(file);
  for (int file : states_)
    if (file >= 0) close(file);
  if (stat_ >= 0) close(stat_);
}

void Stopwatch::watch_all_threads(int threads) {
  for (int file : schedstats_) close(file);
  for (int file : states_)
    if (file >= 0) close(file);
  schedstats_.clear(), states_.clear();
  int found = 0;
  bool all_have_one = true;
  states_known_ = true;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const int file = open((thread.path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0)
      schedstats_.push_back(file);
    else
      all_have_one = false;
    if (thread.path().filename() != std::to_string(gettid())) {
      states_.push_back(open((thread.path() / "stat").c_str(), O_RDONLY | O_CLOEXEC));
      states_known_ &= states_.back() >= 0;
    }
    ++found;
  }
  if (error || found < threads)
    throw HostFault("the threads that a problem is tuned for did not all start",
                    std::to_string(found) + " of " + std::to_string(threads) + " run", error.message(),
                    "raise the limit of processes (ulimit -u, a cgroup's pids.max), and run the same command "
                    "again: it goes on here");
  if (!all_have_one) { // then preemptions of all threads count
    for (int file : schedstats_) close(file);
    schedstats_.clear();
  }
  wall_ = true;
}

double Stopwatch::Disturbance::longest_delay_since(const Disturbance& before) const {
  double longest = 0;
  for (size_t i = 0; i < run_delays.size(); ++i)
    longest = std::max(longest, run_delays[i] - before.run_delays[i]);
  return longest;
}

bool Stopwatch::others_run() const {
  return !states_known_ || std::any_of(states_.begin(), states_.end(), [](int file) {
    char text[64];
    const ssize_t size = pread(file, text, sizeof text, 0);
    const std::string_view found(text, size_t(std::max<ssize_t>(size, 0)));
    return found.find(") R") != found.npos; // behind the number and the name, which has 15 characters at most
  });
}

double Stopwatch::stolen() const { return read_steal_ ? steal_seconds(stat_) : 0; }

Stopwatch::Disturbance Stopwatch::read(bool steal) const {
  Disturbance d;
  for (int file : schedstats_) {
    char text[128];
    const ssize_t size = pread(file, text, sizeof text - 1, 0);
    unsigned long long delay = 0;
    if (size > 0) {
      text[size] = 0;
      std::sscanf(text, "%*u %llu", &delay);
    }
    d.run_delays.push_back(1e-9 * double(delay));
  }
  if (schedstats_.empty()) {
    rusage usage;
    getrusage(wall_ ? RUSAGE_SELF : RUSAGE_THREAD, &usage);
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
  const bool clean = after.longest_delay_since(before) <= kDelayShare * wall_time &&
                     after.preemptions == before.preemptions && after.steal - before.steal <= kTick;
  return {(wall_ ? wall_time : cpu_time) / double(calls), clean};
}

} // namespace deepgen
