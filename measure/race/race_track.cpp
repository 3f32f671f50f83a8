#include "measure/race/race_track.h"

#include "base/json/json.h"
#include "measure/process/device_error.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

namespace deepgen::race {
namespace {

constexpr int kRetries = 3; ///< of a disturbed sample, when it is a short one
constexpr double kShort = 0.05;
constexpr double kSlack = 20, kSettleSlack = 10;
constexpr double kTick = 0.011, kMostStolen = 0.01;
constexpr double kLook = 0.001; ///< seconds from one look at threads that spin to the next

} // namespace

Track::Track(const std::vector<Arm>& arms, const std::vector<size_t>& entered, const RaceOptions& options,
             Channel& channel, const Running& running)
    : arms_(arms), options_(options), channel_(channel), running_(running), random_(options.seed),
      runners_(arms.size()) {
  Lap lap;
  any_rests_ = std::any_of(arms.begin(), arms.end(), [](const Arm& arm) { return arm.rest > 0; });
  start_threads(arms);
  confine(arms, entered);
  for (size_t arm : entered) {
    announce(arm, options_.call_seconds + (arm == entered.front() ? options_.start_seconds : 0));
    make(arm, arms[arm]);
    if (arm == entered.front()) send(FirstMade{});
  }
  lap.seconds();
  if (!entered.empty()) settle(entered.front());
  send(Settled{lap.seconds()});
}

/// While files can still be opened, from which the stopwatch reads of each thread.
void Track::start_threads(const std::vector<Arm>& arms) {
  int threads = 0;
  double rest = 0; // or the first arm is calibrated beside threads that still spin
  for (const Arm& arm : arms)
    if (arm.start) arm.start(), threads = std::max(threads, arm.threads), rest = std::max(rest, arm.rest);
  if (threads) watch_.watch_all_threads(threads);
  wait_for_sleep(rest);
}

/// Samplers are of GPUs, whose drivers cannot live in a sandbox.
void Track::confine(const std::vector<Arm>& arms, const std::vector<size_t>& entered) {
  if (std::none_of(entered.begin(), entered.end(), [&](size_t arm) { return bool(arms[arm].make_sampler); }))
    channel_.confine({0, sandbox::enough_seconds(left()) * (arms.empty() ? 1 : arms.front().threads)});
}

void Track::make(size_t arm, const Arm& how) {
  Runner& r = runners_[arm];
  if (how.make_sampler) {
    guarded(arm, [&] {
      r.sampler = how.make_sampler();
      r.calls = r.sampler.calls;
      warm_up(arm, [&] { r.sampler.take(); });
      r.first = r.sampler.take();
      r.seconds = r.first.seconds;
      if (options_.first_counts) r.early = r.first;
    });
    return;
  }
  r.call = how.make();
  r.rest = how.rest;
  warm_up(arm, r.call);
  calibrate(arm);
  rest_behind(arm);
}

void Track::warm_up(size_t arm, const std::function<void()>& call) {
  for (int i = 0; i < options_.warmup && left() > 0; ++i) {
    announce(arm, options_.call_seconds); // each may take as long as one alone
    call();
  }
}

/// Finds how many calls fill a sample; the first call warms up. Where one call takes far longer than a
/// sample, it is the arm's sample of the first round already: repeating it would use up the budget.
void Track::calibrate(size_t arm) {
  Runner& r = runners_[arm];
  constexpr double kLong = 10;
  const Sample first = watch_.time(r.call, 1);
  r.seconds = first.seconds;
  if (first.seconds > kLong * options_.sample_seconds) {
    r.early = first;
    return;
  }
  const auto long_enough = [&] {
    r.seconds = std::min(r.seconds, watch_.time(r.call, r.calls).seconds);
    return r.seconds * double(r.calls) >= options_.sample_seconds / 8 || r.calls > (1 << 24);
  };
  // A second look at short ones: one that was disturbed would seem to take many times as long, and be
  // dropped.
  for (r.calls = 1; !(long_enough() && (r.seconds > options_.sample_seconds || long_enough()));) r.calls *= 4;
  r.seconds = std::max(r.seconds, 1e-10);
  r.calls = std::max<int64_t>(1, int64_t(std::ceil(options_.sample_seconds / kMostSlices / r.seconds)));
}

void Track::settle(size_t arm) {
  if (!options_.settle) return;
  announce(arm, options_.call_seconds + kSettleSlack * options_.settle_seconds);
  guarded(arm, [&] { options_.settle(options_.settle_seconds); });
}

double Track::round_seconds(const std::vector<size_t>& arms) const {
  double sum = 0;
  for (size_t arm : arms) sum += slice_seconds(runners_[arm]);
  return sum * slices_of(arms);
}

/// One call, so that its caches are its own again. Where arms rest, as many as are timed: a core that has
/// slept is slow at first, and threads of the arm before may spin for a part of a slice.
int64_t Track::warming(const Runner& r) const {
  if (r.sampler.take) return 0;
  return any_rests_ ? r.calls : 1;
}

void Track::warm(const Runner& r) const {
  for (int64_t i = 0; i < warming(r); ++i) r.call();
}

double Track::slice_seconds(const Runner& r) const {
  return r.seconds * double(r.calls + warming(r)) + r.sampler.pause + r.rest;
}

/// Of the threads that spin; `most` seconds where they do not, or where nobody knows.
double Track::wait_for_sleep(double most) const {
  if (most <= 0) return 0;
  const double start = wall_seconds();
  do std::this_thread::sleep_for(std::chrono::duration<double>(std::min(kLook, most)));
  while (wall_seconds() - start < most && watch_.others_run());
  return wall_seconds() - start;
}

double Track::rest_behind(size_t arm) {
  if (arms_[arm].rest <= 0) return 0;
  return runners_[arm].rest = wait_for_sleep(arms_[arm].rest);
}

void Track::make_late(size_t arm) {
  announce(arm, options_.call_seconds);
  make(arm, arms_[arm]);
  runners_[arm].early = runners_[arm].first;
}

void Track::drop(size_t arm) {
  record(arm, 0, runners_[arm].early.value_or(Sample{runners_[arm].seconds, false}));
  send(LeftOut{arm});
}

bool Track::run_round(std::vector<size_t> arms) {
  shuffle(arms, 0);
  std::vector<size_t> open;
  for (size_t arm : arms)
    if (const std::optional<Sample> early = std::exchange(runners_[arm].early, std::nullopt))
      record(arm, round_, *early);
    else
      open.push_back(arm);
  if (slices_of(open) > 1)
    run_slices(open);
  else
    sample_all(open);
  bool throttled = false;
  for (size_t arm : arms) throttled |= runners_[arm].rounds[round_].throttled;
  if (throttled) drop_round(arms);
  ++round_;
  return !throttled;
}

bool Track::run_in_parts(std::vector<size_t> arms) {
  constexpr size_t kPart = 8;
  shuffle(arms, 1);
  const size_t others = arms.size() - 1, parts = std::max<size_t>(1, (others + kPart - 1) / kPart);
  bool counts = true;
  for (size_t part = 0; part < parts; ++part) {
    std::vector<size_t> few = {arms.front()};
    for (size_t i = 1 + others * part / parts; i < 1 + others * (part + 1) / parts; ++i)
      few.push_back(arms[i]);
    counts &= run_round(few);
  }
  return counts;
}

void Track::begin_last(const std::vector<size_t>& arms) {
  for (size_t arm : arms) send(KeptFrom{arm, round_});
}

void Track::shuffle(std::vector<size_t>& arms, size_t from) {
  for (size_t i = arms.size(); i > from + 1; --i) std::swap(arms[i - 1], arms[from + random_() % (i - from)]);
}

/// Of the fastest arm's sample; all arms of a round have as many.
int Track::slices_of(const std::vector<size_t>& arms) const {
  int most = 1;
  for (size_t arm : arms) {
    const Runner& r = runners_[arm];
    if (r.sampler.take) return 1;
    most = std::max(
        most, int(std::min(double(kMostSlices), options_.sample_seconds / (r.seconds * double(r.calls)))));
  }
  return most;
}

/// One sample of each, in slices that take turns. Arms that rest have no other ones: who is sampled whole is
/// not compared with a quartile.
void Track::run_slices(std::vector<size_t> arms) {
  const int count = slices_of(arms);
  announce(arms.front(), std::max(options_.call_seconds, kSlack * round_seconds(arms)));
  std::vector<std::vector<Sample>> slices(runners_.size());
  const double start = wall_seconds(), stolen = watch_.stolen();
  double rested = 0; // when there is nothing to be stolen
  for (int i = 0; i < count; ++i) {
    shuffle(arms, 0);
    for (size_t arm : arms) {
      const Runner& r = runners_[arm];
      running_.set(arm);
      warm(r);
      slices[arm].push_back(watch_.time(r.call, r.calls, false));
      rested += rest_behind(arm);
    }
  }
  const bool robbed = watch_.stolen() - stolen > kTick + kMostStolen * (wall_seconds() - start - rested);
  for (size_t arm : arms) {
    Sample s = sample_of(slices[arm]);
    s.clean &= !robbed;
    record(arm, round_, s);
  }
}

Sample Track::sample(size_t arm) {
  Runner& r = runners_[arm];
  announce(arm, std::max(options_.call_seconds, kSlack * slice_seconds(r)));
  if (r.sampler.take) {
    Sample one;
    guarded(arm, [&] { one = r.sampler.take(); });
    return one;
  }
  // A call that takes long enough warms its own caches.
  const bool needs_warming = r.seconds < options_.sample_seconds;
  const int retries = slice_seconds(r) - r.rest < kShort ? kRetries : 1;
  Sample best;
  for (int attempt = 0; attempt <= retries; ++attempt) {
    if (needs_warming) warm(r);
    const Sample one = watch_.time(r.call, r.calls);
    if (attempt == 0 || one.clean || one.seconds < best.seconds) best = one;
    if (one.clean || left() < 0) break;
  }
  return best;
}

void Track::sample_all(const std::vector<size_t>& arms) {
  for (size_t arm : arms) {
    record(arm, round_, sample(arm));
    rest_behind(arm);
  }
}

void Track::drop_round(const std::vector<size_t>& arms) {
  ++dropped_;
  for (size_t arm : arms) runners_[arm].rounds[round_].throttled = true;
  announce(arms.front(), options_.call_seconds + options_.cool_seconds);
  send(RoundLost{round_});
  std::this_thread::sleep_for(std::chrono::duration<double>(options_.cool_seconds));
}

/// A sampler's exception ends this process, whose device may be lost, after telling why.
void Track::guarded(size_t arm, const std::function<void()>& action) {
  try {
    action();
  } catch (const HostFault&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    if (const auto* of_device = dynamic_cast<const DeviceError*>(&e)) of_device->check_host();
    send(Failed{arm, e.what()});
    std::_Exit(0);
  }
}

void Track::announce(size_t arm, double limit) {
  running_.set(arm);
  channel_.step("timing", limit);
}

void Track::record(size_t arm, int round, const Sample& s) {
  runners_[arm].rounds[round] = s;
  send(Sampled{arm, round, s});
}

void Track::send(const Message& message) { channel_.send(to_json(message)); }

} // namespace deepgen::race
