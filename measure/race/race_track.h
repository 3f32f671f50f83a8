// Track: the arms of a race as the worker has them: made and calibrated, timed in rounds, told to the parent.
#pragma once

#include "measure/process/worker.h"
#include "measure/race/race.h"
#include "measure/race/race_messages.h"
#include "measure/race/slices.h"

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace deepgen::race {

/// Lives in the worker.
class Track {
public:
  Track(const std::vector<Arm>& arms, const std::vector<size_t>& entered, const RaceOptions&, Channel&,
        const Running&);

  double round_seconds(const std::vector<size_t>& arms) const;
  double first_seconds(size_t arm) const { return runners_[arm].seconds; }
  const std::map<int, Sample>& samples(size_t arm) const { return runners_[arm].rounds; }
  double left() const { return options_.deadline - wall_seconds(); }

  /// An arm that was not made with the others. The sample with which it is made is that of its first round.
  void make_late(size_t arm);
  void drop(size_t arm);
  /// Returns whether it counts.
  bool run_round(std::vector<size_t> arms);
  /// A round of many arms, as several of few, each with the anchor, arms.front(): so an arm and the anchor
  /// that it is compared with are close in time, while clocks still change. Returns whether all count.
  bool run_in_parts(std::vector<size_t> arms);
  /// From here on these arms run by themselves.
  void begin_last(const std::vector<size_t>& arms);
  /// Whether so many rounds were dropped that `planned` others would decide nothing either.
  bool hopeless(int planned) const { return dropped_ > kMostDropped * double(planned) + 1; }

private:
  struct Runner {
    std::function<void()> call;
    Sampler sampler;             ///< instead of `call`
    double seconds = 0;          ///< of one call
    int64_t calls = 1;           ///< in a sample, or in a slice of it
    double rest = 0;             ///< seconds behind a slice, as many as the last one took
    Sample first;                ///< of the sampler, when it was made
    std::optional<Sample> early; ///< taken before the first round, which has it then
    std::map<int, Sample> rounds;
  };

  void start_threads(const std::vector<Arm>& arms);
  void confine(const std::vector<Arm>& arms, const std::vector<size_t>& entered);
  void make(size_t arm, const Arm&);
  void warm_up(size_t arm, const std::function<void()>& call);
  void calibrate(size_t arm);
  void settle(size_t arm);

  void shuffle(std::vector<size_t>& arms, size_t from);
  /// Calls ahead of each slice or sample, which nobody times.
  int64_t warming(const Runner&) const;
  void warm(const Runner&) const;
  double slice_seconds(const Runner&) const;
  int slices_of(const std::vector<size_t>& arms) const;
  void run_slices(std::vector<size_t> arms);
  Sample sample(size_t arm);
  void sample_all(const std::vector<size_t>& arms);
  /// Both return how long it took.
  double wait_for_sleep(double most) const;
  double rest_behind(size_t arm);
  void drop_round(const std::vector<size_t>& arms);

  void guarded(size_t arm, const std::function<void()>& action);
  void announce(size_t arm, double limit);
  void record(size_t arm, int round, const Sample&);
  void send(const Message&);

  const std::vector<Arm>& arms_;
  const RaceOptions& options_;
  Channel& channel_;
  const Running& running_;
  Stopwatch watch_;
  std::mt19937_64 random_;
  std::vector<Runner> runners_;
  bool any_rests_ = false;
  int round_ = 0, dropped_ = 0;
};

} // namespace deepgen::race
