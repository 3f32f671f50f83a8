// Races: what their samples say, which arms go on and for how long.
#include "measure/race/race.h"
#include "measure/race/slices.h"
#include "measure/race/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <map>
#include <new>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace deepgen::race_test {
namespace {

ArmResult samples(const std::vector<double>& seconds, const std::vector<int>& dirty = {}) {
  ArmResult r;
  for (size_t i = 0; i < seconds.size(); ++i)
    r.rounds[int(i)] = {seconds[i], std::find(dirty.begin(), dirty.end(), int(i)) == dirty.end()};
  return r;
}

TEST(Race, SummaryPairsRoundsAndLeavesOutDisturbedOnes) {
  // The machine slows down by half; the ratio within rounds stays.
  const ArmResult anchor = samples({1, 1, 2, 2, 2, 9}, {5}), arm = samples({0.8, 0.8, 1.6, 1.6, 1.6, 1.6});
  const Timing t = summarize(arm, anchor, 1);
  EXPECT_NEAR(t.ratio, 0.8, 1e-12);
  EXPECT_NEAR(t.low, 0.8, 1e-12);
  EXPECT_NEAR(t.high, 0.8, 1e-12);
  EXPECT_EQ(t.samples, 6);
  EXPECT_EQ(t.clean, 1);
  EXPECT_NEAR(summarize(anchor, anchor, 1).clean, 5.0 / 6, 1e-12);
  EXPECT_NEAR(clean_share({anchor, arm}), 11.0 / 12, 1e-12);
}

Arm spin(const char* name, int work) {
  return {name, [work]() -> std::function<void()> {
            return [work] {
              for (int i = 0; i < work; ++i) asm volatile("" ::: "memory");
            };
          }};
}

TEST(Race, RanksDropsAndSurvives) {
  std::vector<Arm> arms = {spin("anchor", 40000), spin("fast", 20000), spin("slow", 1000000)};
  arms.push_back({"crash", []() -> std::function<void()> { return [] { std::abort(); }; }});
  arms.push_back({"hang", []() -> std::function<void()> {
                    return [] {
                      while (true) pause();
                    };
                  }});
  RaceOptions options;
  options.sample_seconds = 0.0005;
  options.deadline = wall_seconds() + 10;
  options.call_seconds = 0.5;
  Progress progress("test");
  const std::vector<ArmResult> r = halving_race(arms, options, progress);
  EXPECT_EQ(anchor_of(r), 0u);
  EXPECT_LT(summarize(r[1], r[0], 1).ratio, 0.77);
  EXPECT_GT(r[1].rounds.size(), 3u);
  EXPECT_TRUE(r[2].dropped);
  EXPECT_GT(summarize(r[2], r[0], 1).ratio, 3);
  EXPECT_EQ(r[3].failure, "crash");
  EXPECT_EQ(r[4].failure, "timeout");
  EXPECT_FALSE(r[4].timed());
}

TEST(Race, AFullRaceDropsTheHopelessOfSomeArms) {
  const std::vector<Arm> arms = {spin("anchor", 40000), spin("slow", 1000000), spin("fast", 20000),
                                 spin("slow, but no candidate", 1000000)};
  RaceOptions options;
  options.sample_seconds = 0.0005;
  options.deadline = wall_seconds() + 1;
  options.hopeless = {1, 3, 3};
  Progress progress("test");
  const std::vector<ArmResult> r = full_race(arms, 5, 5, options, progress);
  EXPECT_TRUE(r[1].dropped);
  EXPECT_TRUE(r[1].timed());
  EXPECT_EQ(r[1].rounds.size(), 1u);
  EXPECT_GT(summarize(r[1], r[0], 1).ratio, 3);
  for (size_t other : {0, 2, 3}) {
    EXPECT_FALSE(r[other].dropped);
    EXPECT_GE(r[other].rounds.size(), 5u);
  }
  EXPECT_EQ(clean_share(r), clean_share({r[0], r[2], r[3]}));
}

TEST(Race, ComparesArmsWithAnAnchorCloseInTime) {
  const std::vector<Arm> arms(25, spin("any", 2000));
  RaceOptions options;
  options.sample_seconds = 0.0002;
  options.deadline = wall_seconds() + 20;
  Progress progress("test");
  const std::vector<ArmResult> r = halving_race(arms, options, progress);
  std::map<int, int> others;
  for (size_t i = 1; i < r.size(); ++i) {
    EXPECT_GE(r[i].rounds.size(), 3u);
    for (const auto& [round, sample] : r[i].rounds) {
      ++others[round];
      EXPECT_TRUE(r[0].rounds.count(round));
    }
  }
  EXPECT_EQ(r[0].rounds.size(), others.size());
  EXPECT_EQ(r[0].rounds.size(), 3u * 3 + 5 + 9); // 24 others in three parts, then the best 8 in one
  for (const auto& [round, count] : others) EXPECT_LE(count, 8);
}

/// What shares the core comes and goes: arms take turns within a round, not each for as long as a sample.
TEST(Race, ShortCallsTakeTurnsInSlices) {
  struct Turns {
    int last, changes;
  };
  auto* turns = static_cast<Turns*>(
      mmap(nullptr, sizeof(Turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(turns, MAP_FAILED);
  std::vector<Arm> arms;
  for (int i = 1; i <= 2; ++i)
    arms.push_back({std::to_string(i), [=] {
                      return [=, work = spin("", 1000).make()] {
                        turns->changes += turns->last != i;
                        turns->last = i;
                        work();
                      };
                    }});
  RaceOptions options;
  options.deadline = wall_seconds() + 20;
  Progress progress("test");
  const auto r = full_race(arms, 5, 5, options, progress);
  EXPECT_EQ(r[1].rounds.size(), 5u);
  EXPECT_GE(turns->changes, 5 * 8);
  munmap(turns, sizeof(Turns));
}

/// Shared with the worker.
struct Seen {
  double last_call = 0, shortest = 1e9; ///< of the resting arm; from there to a call of another one
  int calls = 0, followed = 0;
};

/// Threads that go on spinning behind a call would take the CPUs of whatever is timed next.
TEST(Race, OthersWaitBehindAnArmThatRests) {
  constexpr double kRest = 0.02;
  auto* seen = static_cast<Seen*>(
      mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(seen, MAP_FAILED);
  *seen = {};
  const auto other = [seen]() -> std::function<void()> {
    return [seen] {
      if (seen->last_call == 0) return;
      seen->shortest = std::min(seen->shortest, wall_seconds() - seen->last_call);
      seen->last_call = 0, ++seen->followed;
    };
  };
  std::vector<Arm> arms = {{"anchor", other}, {"other", other}};
  arms.push_back({.name = "resting",
                  .make = [seen]() -> std::function<void()> {
                    return [seen] { seen->last_call = wall_seconds(), ++seen->calls; };
                  },
                  .rest = kRest});
  RaceOptions options;
  options.sample_seconds = 0.0005;
  options.deadline = wall_seconds() + 10;
  Progress progress("test");
  const std::vector<ArmResult> r = full_race(arms, 5, 5, options, progress);
  for (const ArmResult& arm : r) EXPECT_EQ(arm.rounds.size(), 5u);
  EXPECT_GT(seen->calls, 5) << "a sample has several calls";
  EXPECT_GE(seen->followed, 4);
  EXPECT_GE(seen->shortest, kRest);
  munmap(seen, sizeof(Seen));
}

/// Shared with the worker.
struct Turns {
  int last = -1, calls = 0, of[3] = {0, 0, 0};
  double shortest = 1e9; ///< from the last call of a resting arm to another's
  double last_rested = 0;
  void count(int arm) {
    if (std::exchange(last, arm) != arm) ++of[arm];
    ++calls;
  }
};

template <typename T>
struct Shared {
  Shared()
      : page(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        value(new (page) T()) {}
  Shared(const Shared&) = delete;
  ~Shared() { munmap(page, sizeof(T)); }
  void* page;
  T* value;
};

/// A vendor on several threads is sampled as kernels are: one that was sampled whole would be timed with
/// every disturbance of its sample, and a kernel without.
TEST(Race, AnArmThatRestsIsTimedByTheSlicesOfOthers) {
  const Shared<Turns> turns;
  // As another tenant of the core would, slows everything down for half a millisecond in each one.
  const auto call = [&](int arm) {
    return [turns = turns.value, arm]() -> std::function<void()> {
      return [=] {
        turns->count(arm);
        const double start = wall_seconds(), phase = std::fmod(start, 1e-3);
        const double end = start + (phase < 0.5e-3 ? 2e-5 : 2e-6);
        while (wall_seconds() < end) {
        }
      };
    };
  };
  std::vector<Arm> arms = {{"anchor", call(0)}, {"other", call(1)}};
  arms.push_back({.name = "resting", .make = call(2), .rest = 0.0015});
  RaceOptions options;
  options.deadline = wall_seconds() + 60;
  Progress progress("test");
  const std::vector<ArmResult> r = full_race(arms, 9, 9, options, progress);
  for (int arm : {0, 1, 2}) {
    EXPECT_EQ(r[size_t(arm)].rounds.size(), 9u);
    EXPECT_GE(turns.value->of[arm], 9 * kMostSlices / 2) << "two neighbouring slices look like one";
  }
  EXPECT_NEAR(summarize(r[2], r[0], 1).ratio, 1, 0.25);
}

/// Waiting is for those that spin.
TEST(Race, OthersWaitUntilThreadsSleepAndNotLonger) {
  constexpr double kSpin = 0.01, kMost = 4;
  const Shared<Turns> turns;
  std::atomic<double> last{0};
  std::atomic<int> calls{0};
  const auto other = [turns = turns.value]() -> std::function<void()> {
    return [turns] {
      turns->count(0);
      if (const double since = std::exchange(turns->last_rested, 0.0); since > 0)
        turns->shortest = std::min(turns->shortest, wall_seconds() - since);
    };
  };
  std::vector<Arm> arms = {{.name = "anchor", .make = other, .threads = 2, .start = [] {}}};
  arms.push_back({.name = "resting",
                  .make = [&, turns = turns.value]() -> std::function<void()> {
                    return [&, turns] {
                      turns->count(1);
                      last = turns->last_rested = wall_seconds();
                      ++calls, calls.notify_one();
                    };
                  },
                  .threads = 2,
                  .start =
                      [&] {
                        std::thread([&] {
                          for (int seen = 0;; calls.wait(seen)) {
                            seen = calls;
                            while (wall_seconds() - last < kSpin) {
                            }
                          }
                        }).detach();
                      },
                  .rest = kMost});
  RaceOptions options;
  options.sample_seconds = 0.02; // no hiccup takes ten times as long
  options.deadline = wall_seconds() + 60;
  Progress progress("test");
  const std::vector<ArmResult> r = full_race(arms, 1, 1, options, progress);
  EXPECT_EQ(r[1].failure, "") << r[1].detail;
  EXPECT_GE(turns.value->of[1], kMostSlices / 3);
  EXPECT_GE(turns.value->shortest, kSpin);
  EXPECT_LT(turns.value->shortest, kMost / 2);
}

TEST(Slices, TheirLowerQuartileCounts) {
  std::vector<Sample> slices(9);
  for (size_t i = 0; i < 9; ++i) slices[i].seconds = double(i);
  EXPECT_EQ(sample_of(slices).seconds, 2);
  EXPECT_TRUE(sample_of(slices).clean);
  for (size_t i = 0; i < 4; ++i) slices[i].clean = false;
  EXPECT_EQ(sample_of(slices).seconds, 5) << "of 4 to 8";
  slices[8].clean = false;
  EXPECT_EQ(sample_of(slices).seconds, 2);
  EXPECT_FALSE(sample_of(slices).clean);
}

TEST(Race, RespectsTheBudget) {
  RaceOptions options;
  options.deadline = wall_seconds() + 0.3;
  Progress progress("test");
  const double start = wall_seconds();
  const auto r = full_race({spin("a", 1000), spin("b", 1000)}, 3, 100000, options, progress);
  EXPECT_GE(r[0].rounds.size(), 3u);
  EXPECT_EQ(r[0].rounds.size(), r[1].rounds.size());
  EXPECT_LT(wall_seconds() - start, 5);
}

TEST(Race, TheRoundsAfterTheCutsHaveSecondsOfTheirOwn) {
  std::vector<Arm> arms;
  for (double seconds : {1e-4, 1.01e-4, 1.02e-4, 1.5e-4})
    arms.push_back({"any", {}, [=] { return Sampler{[=] { return Sample{seconds, true}; }}; }});
  RaceOptions options;
  options.deadline = wall_seconds() + 20;
  options.cuts = {{0, arms.size(), 0.03}};
  Progress progress("test");
  for (auto [seconds, rounds] : {std::pair(1e9, 60u), {12.5e-3, 41u}, {0.0, 31u}}) { // a round: 0.303 ms
    options.last_seconds = seconds;
    const auto r = full_race(arms, 11, 60, options, progress);
    EXPECT_EQ(r[0].last_from, 15) << seconds;
    EXPECT_EQ(r[0].rounds.size(), 15 + rounds) << seconds;
    EXPECT_EQ(r[3].rounds.size(), 15u) << "cut";
  }
}

} // namespace
} // namespace deepgen::race_test
