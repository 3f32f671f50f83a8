// Series: races in one worker have the results of single ones, whatever happens to the worker.
#include "base/text/error.h"
#include "measure/race/race_track.h"
#include "measure/race/series.h"
#include "measure/race/two_regimes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace deepgen::series_test {
namespace {

constexpr int kMost = 4096;

/// What workers did, which all processes see.
struct Diary {
  struct Entry {
    int race, arm; ///< arm -1: the race's field was freed; -2: an arm's samples were
    pid_t pid;
    double left; ///< seconds to the deadline, where the strategy notes it
  };
  std::atomic<int> count{0}, crashes{0};
  Entry entries[kMost];

  void note(int race, int arm, double left = 0) {
    if (const int i = count++; i < kMost) entries[i] = {race, arm, getpid(), left};
  }
  /// In the order in which they were sampled.
  std::vector<int> arms_of(int race) const {
    std::vector<int> out;
    for (int i = 0; i < count; ++i)
      if (entries[i].race == race && entries[i].arm >= 0) out.push_back(entries[i].arm);
    return out;
  }
  /// Processes that sampled the race, each once.
  std::vector<pid_t> workers_of(int race) const {
    std::vector<pid_t> out;
    for (int i = 0; i < count; ++i)
      if (entries[i].race == race && entries[i].arm >= 0 &&
          std::find(out.begin(), out.end(), entries[i].pid) == out.end())
        out.push_back(entries[i].pid);
    return out;
  }
};

class Serial : public ::testing::Test {
protected:
  void SetUp() override {
    void* page = mmap(nullptr, sizeof(Diary), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    diary_ = new (page) Diary();
  }
  void TearDown() override { munmap(diary_, sizeof(Diary)); }

  using Mishap = std::function<void(int sample)>;

  /// Always the same samples, which differ from arm to arm, race to race and regime to regime.
  Arm arm(int race, int number, const Mishap& mishap = {}) {
    Arm a;
    a.name = std::to_string(number);
    // Made in the worker, and owned by the arm, as a loaded kernel is.
    a.make_in_regime = [=, diary = diary_,
                        loaded = std::make_shared<std::shared_ptr<void>>()](Regime regime) {
      auto random = std::make_shared<std::mt19937_64>(race * 100 + number * 7 + int(regime));
      if (!*loaded) *loaded = std::shared_ptr<void>(nullptr, [=](void*) { diary->note(race, -2); });
      return Sampler{[=, count = std::make_shared<int>(0)] {
                       diary->note(race, number);
                       if (mishap) mishap(++*count);
                       std::normal_distribution<double> normal;
                       const double seconds = 1e-5 * (1 + 0.1 * number + 0.05 * (regime == Regime::bursts));
                       return Sample{seconds * std::exp(0.02 * normal(*random)), true, 1500};
                     },
                     10};
    };
    a.make_sampler = [make = a.make_in_regime] { return make(Regime::sustained); };
    return a;
  }
  std::vector<Arm> arms(int race, int count) {
    std::vector<Arm> out;
    for (int i = 0; i < count; ++i) out.push_back(arm(race, i));
    return out;
  }

  static RaceOptions options(uint64_t seed = 1) {
    RaceOptions o;
    o.seed = seed, o.most_rounds = 20, o.cool_seconds = 0;
    return o;
  }
  static Race in_time(Race r, double seconds = 60) {
    r.seconds = seconds;
    return r;
  }

  std::vector<std::vector<ArmResult>> told_;
  size_t run(size_t count, const std::function<Race(size_t)>& race) {
    told_.clear();
    return run_series({count, race,
                       [&](size_t i, const std::vector<ArmResult>& r) {
                         EXPECT_EQ(i, told_.size());
                         told_.push_back(r);
                         return true;
                       }},
                      progress_);
  }

  Diary* diary_ = nullptr;
  Progress progress_{"test"};
};

void expect_equal(const std::vector<ArmResult>& a, const std::vector<ArmResult>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].dropped, b[i].dropped);
    EXPECT_EQ(a[i].last_from, b[i].last_from);
    EXPECT_EQ(a[i].failure, b[i].failure);
    ASSERT_EQ(a[i].rounds.size(), b[i].rounds.size()) << i;
    for (const auto& [round, sample] : a[i].rounds) {
      ASSERT_TRUE(b[i].rounds.count(round));
      EXPECT_EQ(sample.seconds, b[i].rounds.at(round).seconds) << i << ", round " << round;
    }
  }
}

/// Rounds, cuts, halving and both regimes, from the same samples.
TEST_F(Serial, ResultsAndOrderAreThoseOfSingleRaces) {
  const auto race = [&](size_t i) {
    const int n = int(i);
    RaceOptions o = options(i + 3);
    if (i == 0) return in_time(plan_full(arms(n, 3), 5, 9, o));
    if (i == 1) return in_time(plan_halving(arms(n, 30), o));
    if (i == 2) {
      o.cuts = {{0, 6, 0.03}}, o.heat_rounds = 6, o.fewest_last = 5, o.last_seconds = 0, o.enough_last = 7;
      return in_time(plan_full(arms(n, 6), 5, 20, o));
    }
    std::vector<Arm> all = arms(n, 5);
    Bursts bursts{{}, {{1, 5, 0, 2}}, 3, 0, 30};
    for (const Arm& a : all) bursts.arms.push_back(in_regime(a, Regime::bursts));
    return in_time(plan_full_in_two(all, bursts, 5, o));
  };
  constexpr size_t kRaces = 4;
  ASSERT_EQ(run(kRaces, race), kRaces);
  const auto series = told_;
  std::vector<std::vector<int>> orders;
  for (size_t i = 0; i < kRaces; ++i) {
    orders.push_back(diary_->arms_of(int(i)));
    EXPECT_EQ(diary_->workers_of(int(i)), diary_->workers_of(0)) << "one worker";
  }
  EXPECT_NE(diary_->workers_of(0).front(), getpid());
  for (size_t i = 0; i < kRaces; ++i) {
    diary_->count = 0;
    expect_equal(run_alone(race(i), progress_), series[i]);
    EXPECT_EQ(diary_->arms_of(int(i)), orders[i]) << "race " << i;
  }
  EXPECT_EQ(series[2][0].last_from, 6);
  EXPECT_EQ(in_two(series[3], 5).bursts[0].rounds.size(), 3u);
}

/// What one race has made is gone before the next one makes anything: a device's memory holds one size.
TEST_F(Serial, AFieldIsFreedBehindItsArmsAndBeforeTheNextRace) {
  const auto race = [&](size_t i) {
    Race r = in_time(plan_full(arms(int(i), 2), 2, 2, options()));
    r.field = std::shared_ptr<void>(nullptr, [diary = diary_, i](void*) { diary->note(int(i), -1); });
    return r;
  };
  run(3, race);
  const pid_t worker = diary_->workers_of(0).front();
  std::vector<std::pair<int, int>> order; // races, and what was freed
  for (int i = 0; i < diary_->count; ++i) {
    const Diary::Entry& e = diary_->entries[i];
    const std::pair<int, int> one(e.race, std::min(e.arm, 0));
    if (e.pid == worker && (order.empty() || order.back() != one)) order.push_back(one);
  }
  const std::vector<std::pair<int, int>> expected = {{0, 0},  {0, -2}, {0, -1}, {1, 0},
                                                     {1, -2}, {1, -1}, {2, 0}};
  EXPECT_EQ(order, expected) << "the last one ends with its process";
}

/// The arm `number` of race 1 comes to harm; whoever plans leaves out what has failed.
class Harm : public Serial {
protected:
  size_t run_with(const Mishap& mishap, const RaceOptions& o = options(), size_t count = 4) {
    const auto race = [&, mishap, o](size_t i) {
      asked_.push_back(i);
      std::vector<Arm> all;
      for (int number : {0, 1, 2})
        if (number != 2 || told_.size() <= 1)
          all.push_back(arm(int(i), number, i == 1 && number == 2 ? mishap : Mishap()));
      return in_time(plan_full(std::move(all), 4, 4, o));
    };
    return run(count, race);
  }
  void expect_others_timed() {
    ASSERT_EQ(told_.size(), 4u);
    for (size_t i = 0; i < told_.size(); ++i) {
      EXPECT_EQ(told_[i].size(), i <= 1 ? 3u : 2u) << "planned again without it";
      for (size_t k = 0; k < told_[i].size(); ++k)
        if (i != 1 || k != 2) {
          EXPECT_EQ(told_[i][k].rounds.size(), 4u) << i << ", " << k << told_[i][k].detail;
        }
    }
    EXPECT_TRUE(told_[1][2].rounds.empty()) << "nothing that it said counts";
    EXPECT_EQ(diary_->workers_of(0).size(), 1u) << "what was told is not measured again";
    EXPECT_EQ(diary_->workers_of(1).size(), 2u);
    EXPECT_EQ(diary_->workers_of(1)[0], diary_->workers_of(0)[0]);
    EXPECT_EQ(diary_->workers_of(2), diary_->workers_of(3)) << "the rest shares a worker again";
    EXPECT_EQ(asked_, (std::vector<size_t>{0, 1, 2, 3, 2, 3}));
  }
  std::vector<size_t> asked_;
};

TEST_F(Harm, ACrashTakesOneArmOfOneRace) {
  EXPECT_EQ(run_with([](int sample) {
              if (sample == 3) std::abort();
            }),
            4u);
  EXPECT_EQ(told_[1][2].failure, "crash");
  EXPECT_EQ(told_[1][2].detail.rfind("SIGABRT in: ", 0), 0u) << told_[1][2].detail;
  expect_others_timed();
}

TEST_F(Harm, ALostDeviceTakesOneArmOfOneRace) {
  run_with([](int sample) {
    if (sample == 2) throw std::runtime_error("CUDA_ERROR_ILLEGAL_ADDRESS");
  });
  EXPECT_EQ(told_[1][2].failure, "crash");
  EXPECT_EQ(told_[1][2].detail, "CUDA_ERROR_ILLEGAL_ADDRESS");
  expect_others_timed();
}

TEST_F(Harm, AHangTakesOneArmOfOneRace) {
  RaceOptions o = options();
  o.call_seconds = 0.4;
  run_with(
      [](int sample) {
        if (sample != 2) return;
        while (true) pause();
      },
      o);
  EXPECT_EQ(told_[1][2].failure, "timeout");
  EXPECT_EQ(told_[1][2].detail, "no answer within 0.4 s in: timing");
  expect_others_timed();
}

/// A kernel that writes in its worker's name cannot end a race, or begin one.
TEST_F(Harm, AForgedBeginningIsACrash) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0); // the worker's end has the number that the next pipe's has
  for (int end : ends) close(end);
  for (const char* race : {"0", "1", "3", "9"}) {
    diary_->count = 0, asked_.clear();
    const std::string line = "{\"message\":{\"kind\":\"begun\",\"race\":" + std::string(race) + "}}\n";
    run_with([line, fd = ends[1]](int sample) {
      if (sample != 2) return;
      EXPECT_EQ(write(fd, line.data(), line.size()), ssize_t(line.size()));
      std::this_thread::sleep_for(std::chrono::seconds(5)); // until it is found out
    });
    EXPECT_EQ(told_[1][2].failure, "crash");
    EXPECT_NE(told_[1][2].detail.find("began a race out of turn"), std::string::npos) << told_[1][2].detail;
    expect_others_timed();
  }
}

TEST_F(Harm, AWorkerThatEndsBeforeItsLastRaceIsACrash) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (int end : ends) close(end);
  run_with([fd = ends[1]](int sample) {
    constexpr char kDone[] = "{\"done\":true}\n";
    if (sample == 2 && write(fd, kDone, sizeof kDone - 1) > 0) _exit(0);
  });
  EXPECT_EQ(told_[1][2].failure, "crash");
  EXPECT_EQ(told_[1][2].detail, "the worker ended before its last race");
  expect_others_timed();
}

TEST_F(Harm, AFaultOfTheHostEndsTheSeries) {
  EXPECT_THROW(run_with([](int sample) {
                 if (sample == 2)
                   throw HostFault("no memory on the device", "", "others have it", "end them");
               }),
               HostFault);
  EXPECT_EQ(told_.size(), 1u) << "the race before it";
}

TEST_F(Harm, AWorkerKilledFromElsewhereRacesAgainOnceARace) {
  Diary* const diary = diary_;
  const auto killed_times = [diary](int kills) {
    return [=](int sample) {
      if (sample == 2 && diary->crashes++ < kills) raise(SIGKILL);
    };
  };
  const auto race = [&](size_t i) {
    return in_time(
        plan_full({arm(int(i), 0), arm(int(i), 1, killed_times(2 * int(i) + 1))}, 3, 3, options()));
  };
  EXPECT_EQ(run(2, race), 2u) << "one kill in each race";
  EXPECT_EQ(diary_->crashes, 4) << "of which the first and the third were kills";
  for (const auto& results : told_)
    for (const ArmResult& r : results) EXPECT_EQ(r.rounds.size(), 3u) << r.failure;
  diary_->crashes = 0;
  EXPECT_THROW(run_with(killed_times(2)), HostFault);
  EXPECT_EQ(told_.size(), 1u);
}

/// Where the end of all time comes in race 1: its samples count, and nobody behind it is to blame.
TEST_F(Serial, TheEndComesInTheMiddle) {
  const double start = wall_seconds();
  size_t asked = 0;
  const auto race = [&](size_t i) {
    ++asked;
    RaceOptions o = options();
    o.end = start + 1.5;
    const Mishap slow = [](int sample) {
      if (sample == 3) std::this_thread::sleep_for(std::chrono::seconds(20));
    };
    return in_time(plan_full({arm(int(i), 0), arm(int(i), 1, i == 1 ? slow : Mishap())}, 9, 9, o));
  };
  EXPECT_EQ(run(4, race), 4u);
  EXPECT_EQ(asked, 4u) << "planning may take long";
  EXPECT_LT(wall_seconds() - start, 15);
  EXPECT_EQ(told_[0][1].rounds.size(), 9u);
  EXPECT_GE(told_[1][0].rounds.size(), 1u) << "what has been sampled counts";
  EXPECT_LT(told_[1][0].rounds.size(), 9u);
  for (size_t i : {2u, 3u}) {
    ASSERT_EQ(told_[i].size(), 2u);
    for (const ArmResult& r : told_[i]) EXPECT_FALSE(r.timed() || !r.failure.empty()) << i << r.detail;
    EXPECT_TRUE(diary_->workers_of(int(i)).empty());
  }
}

/// A share of the time begins with its race, and goes on where the race is run again.
TEST_F(Serial, ADeadlineCountsFromTheBeginningOfItsRace) {
  // Who plans counts from when it hears of a race's beginning, which may be late: the worker sleeps longer.
  static constexpr double kShare = 30, kSlow = 1.2, kSlept = kSlow + 0.6;
  const auto race = [&](size_t i) {
    Diary* const diary = diary_;
    const Mishap slow = [](int) { std::this_thread::sleep_for(std::chrono::duration<double>(kSlept)); };
    const Mishap slow_crash = [=](int sample) {
      slow(sample);
      if (diary->crashes++ == 0) std::abort();
    };
    Race r = in_time({}, kShare);
    r.arms = {arm(int(i), 0, i == 0 ? slow : Mishap()), arm(int(i), 1, i == 2 ? slow_crash : Mishap())};
    r.options = options();
    r.strategy = [diary, i](race::Track& track, const std::vector<size_t>& entered, const RaceOptions&) {
      diary->note(int(i), 100 + int(entered.size()), track.left());
    };
    return r;
  };
  EXPECT_EQ(run(4, race), 4u);
  std::vector<double> left;
  for (int i = 0; i < diary_->count; ++i)
    if (const Diary::Entry& e = diary_->entries[i]; e.arm >= 100) left.push_back(e.left);
  ASSERT_EQ(left.size(), 4u);
  EXPECT_LE(left[0], kShare - kSlow) << "it was slow to make its arms";
  EXPECT_GT(left[1], kShare - kSlow) << "in the same worker, with a share of its own";
  EXPECT_LE(left[2], kShare - kSlow) << "the crash took some of its share";
  EXPECT_GT(left[3], kShare - kSlow) << "but none of the next one's";
  EXPECT_EQ(told_[2][1].failure, "crash");
}

/// A round in which the device throttled is told of its own race, and repeated there.
TEST_F(Serial, AThrottledRoundIsRepeatedInItsRace) {
  const auto race = [&](size_t i) {
    std::vector<Arm> all = arms(int(i), 3);
    if (i == 1)
      all[1].make_sampler = [make = all[1].make_sampler] {
        Sampler s = make();
        s.take = [take = s.take, count = std::make_shared<int>(0)] {
          Sample one = take();
          one.throttled = ++*count == 4; // the first one is no round's
          return one;
        };
        return s;
      };
    return in_time(plan_full(std::move(all), 6, 6, options()));
  };
  run(3, race);
  for (size_t i = 0; i < 3; ++i)
    for (const ArmResult& r : told_[i]) {
      EXPECT_EQ(r.rounds.size(), i == 1 ? 7u : 6u);
      EXPECT_EQ(
          std::count_if(r.rounds.begin(), r.rounds.end(), [](const auto& x) { return x.second.throttled; }),
          i == 1);
    }
  EXPECT_EQ(dropped_share(told_[0]), 0);
  EXPECT_NEAR(dropped_share(told_[1]), 1.0 / 7, 1e-9);
}

TEST_F(Serial, WhoIsToldMayEndIt) {
  const auto race = [&](size_t i) { return in_time(plan_full(arms(int(i), 2), 3, 3, options())); };
  size_t told = 0;
  const auto until_second = [&](size_t, const std::vector<ArmResult>&) { return ++told < 2; };
  EXPECT_EQ(run_series({100, race, until_second}, progress_), 2u);
  EXPECT_EQ(told, 2u);
  const pid_t worker = diary_->workers_of(0).front();
  EXPECT_NE(kill(worker, 0), 0) << "its worker has ended";
}

/// Confined as they are, they cannot go on with another race.
TEST_F(Serial, RacesOfCallsHaveAWorkerEachAndArePlannedInTime) {
  size_t asked = 0;
  const auto race = [&](size_t i) {
    EXPECT_EQ(told_.size(), i) << "operands of one size at a time";
    ++asked;
    const auto call = [diary = diary_, i]() -> std::function<void()> {
      diary->note(int(i), 0);
      return [] {
        for (int k = 0; k < 20000; ++k) asm volatile("" ::: "memory");
      };
    };
    RaceOptions o = options();
    o.sample_seconds = 0.0002;
    return in_time(plan_full({{"a", call}, {"b", call}}, 3, 3, o));
  };
  EXPECT_EQ(run(3, race), 3u);
  EXPECT_EQ(asked, 3u);
  for (const auto& results : told_) EXPECT_EQ(results[1].rounds.size(), 3u) << results[1].detail;
  EXPECT_NE(diary_->workers_of(0), diary_->workers_of(1));
}

TEST_F(Serial, StartsAreCounted) {
  Spent spent;
  const auto race = [&](size_t i) {
    RaceOptions o = options();
    o.spent = &spent;
    const Mishap slow = [i](int sample) {
      if (sample == 1) std::this_thread::sleep_for(std::chrono::milliseconds(i ? 20 : 300));
    };
    return in_time(plan_full({arm(int(i), 0, slow), arm(int(i), 1)}, 3, 3, o));
  };
  run(5, race);
  EXPECT_EQ(spent.starts.count, 1);
  EXPECT_EQ(spent.further.count, 4);
  EXPECT_GE(spent.starts.seconds, 0.3);
  EXPECT_GT(spent.further.seconds, 0);
  EXPECT_LE(spent.starts.seconds + spent.further.seconds, spent.making + 0.1);
}

} // namespace
} // namespace deepgen::series_test
