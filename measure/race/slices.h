// Short calls are timed in slices that take turns with those of the other arms, within a few milliseconds.
#pragma once

#include "measure/process/stopwatch.h"

#include <atomic>
#include <vector>

namespace deepgen {

constexpr int kMostSlices = 16; ///< of a sample

/// One sample: a lower quartile, over the undisturbed slices where these are half of them. What shares the
/// caches or the core comes and goes within milliseconds, and between such moments lies the time of the call
/// itself.
Sample sample_of(const std::vector<Sample>& slices);

/// The arm that runs, for the parent to blame when its worker dies: a message for every slice would disturb
/// what is timed.
class Running {
public:
  Running();
  Running(const Running&) = delete;
  ~Running();
  void set(size_t arm) const { *arm_ = arm; }
  size_t get() const { return *arm_; }

private:
  std::atomic<size_t>* arm_; ///< in memory that both processes share
};

} // namespace deepgen
