// Times calls on this thread and tells whether something else disturbed them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace deepgen {

double wall_seconds(); ///< for budgets and limits; stands still while this program is stopped
                       ///< (measure/process/awake.h)
double thread_cpu_seconds();

struct Sample {
  /// Per call: of the thread's own CPU time, of wall time where several threads compute, or between two
  /// events on a GPU.
  double seconds = 0;
  bool clean = true;
  double megahertz = 0;   ///< the GPU's clock at the time; 0: not read
  bool throttled = false; ///< a GPU slowed down by heat or by its supply: says nothing about the kernel
  bool capped = false;    ///< a GPU at its power limit: the normal state of a busy one
};

/// One thread's. CPU time leaves out the time that others ran, but not what they did to the caches, nor what
/// the hypervisor took. A sample is clean when the thread waited for a CPU at most 0.5 % of the wall time
/// (schedstat; where that is missing, when it was never preempted) and the machine lost at most one tick to
/// the hypervisor (steal). Of a call on several threads wall time counts, as one that waits holds up all:
/// then a sample is clean when none of them waited longer than that.
class Stopwatch {
public:
  Stopwatch();
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// From here on, times calls that all threads of this process take part in, by wall time. They run already,
  /// at least `threads` of them; else throws HostFault.
  void watch_all_threads(int threads);

  /// Without `steal`, it is not asked what the hypervisor took, which takes as long as a short call.
  Sample time(const std::function<void()>& call, int64_t calls, bool steal = true) const;
  double stolen() const; ///< seconds so far, of all CPUs
  /// Whether a thread other than the caller's runs or waits for a CPU, of those that watch_all_threads() has
  /// seen; true where the kernel does not tell.
  bool others_run() const;

private:
  struct Disturbance {
    std::vector<double> run_delays; ///< of each thread
    double steal = 0;
    int64_t preemptions = 0;
    double longest_delay_since(const Disturbance&) const;
  };
  Disturbance read(bool steal) const;
  std::vector<int> schedstats_; ///< of the threads; empty: the kernel has none
  std::vector<int> states_;     ///< of the threads but the one that watches
  int stat_ = -1;
  bool read_steal_ = false, wall_ = false, states_known_ = false;
};

} // namespace deepgen
