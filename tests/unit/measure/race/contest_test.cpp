// Whole contests on a simulated device, over many seeds: noise, drift, autocorrelation and throttling as
// unlocked clocks give, and true times that are known. Nothing here depends on the time that anything takes.
#include "base/json/json.h"
#include "base/search/decide.h"
#include "measure/race/contest.h"
#include "tests/unit/sanitized.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace deepgen::contest_test {
namespace {

/// What a worker's samples come from. Each race begins with a fresh one, as it forks.
struct Machine {
  uint64_t seed = 1;
  double noise = 0.01;     ///< of a sample
  double drift = 0.05;     ///< amplitude of a slow wave that all arms share
  double correlated = 0.5; ///< of the shared noise, from one sample to the next
  double throttled = 0;    ///< share of samples in which the device throttles
  bool capped = true;

  double time(double seconds, double megahertz, Sample& s) {
    if (!started_) random_.seed(seed), started_ = true;
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    shared_ = correlated * shared_ + 0.01 * normal(random_);
    const double wave = drift * std::sin(0.01 * double(++samples_));
    s.seconds = seconds * std::exp(noise * normal(random_) + shared_ + wave);
    s.megahertz = megahertz;
    s.capped = capped;
    s.throttled = uniform(random_) < throttled;
    if (s.throttled) s.seconds *= 1 + uniform(random_);
    return s.seconds;
  }

private:
  bool started_ = false;
  std::mt19937_64 random_;
  double shared_ = 0;
  int64_t samples_ = 0;
};

struct Simulated {
  double seconds, megahertz = 1500;
  double serial = 1, burst = 1; ///< times as long as sustained
};

double seconds_in(const Simulated& one, Regime regime) {
  return one.seconds * (regime == Regime::serial ? one.serial : regime == Regime::bursts ? one.burst : 1);
}

Arm arm_of(const std::shared_ptr<Machine>& machine, const Simulated& one) {
  Arm a;
  a.make_in_regime = [machine, one](Regime regime) {
    return Sampler{[machine, one, regime] {
                     Sample s;
                     machine->time(seconds_in(one, regime), one.megahertz, s);
                     return s;
                   },
                   1};
  };
  a.make_sampler = [make = a.make_in_regime] { return make(Regime::sustained); };
  return a;
}

/// The first one is the default. `vendor`: times of its algorithms.
Contest contest_of(const Machine& machine, const std::vector<Simulated>& arms,
                   const std::vector<double>& vendor = {}) {
  Contest c;
  for (size_t i = 0; i < arms.size(); ++i) {
    Record r;
    r.stage = "final", r.slot = int64_t(i), r.origin = i ? "model" : "default",
    r.sha256 = "sha" + std::to_string(i);
    r.choice = {"t", {}};
    r.choice.config.set("x", int64_t(i));
    c.finalists.push_back(r);
  }
  c.field = [machine, arms, vendor, races = std::make_shared<uint64_t>(0)] {
    auto shared = std::make_shared<Machine>(machine);
    shared->seed = machine.seed * 1000 + ++*races;
    Field f;
    f.finalists = arms.size();
    f.arm = [shared, arms](size_t i, const std::string&) { return arm_of(shared, arms[i]); };
    for (double seconds : vendor) {
      f.vendor_arms.push_back(arm_of(shared, {seconds}));
      f.vendor_arms.back().name = "algorithm " + std::to_string(f.vendor_arms.size() - 1);
    }
    return f;
  };
  if (!vendor.empty()) c.vendor = "vendor 1.0";
  c.options.cool_seconds = 0;
  c.options.seed = machine.seed;
  return c;
}

RecordLog log_of(const Machine& machine, const std::vector<Simulated>& arms,
                 const std::vector<double>& vendor = {}) {
  Progress silent("test");
  return run_contest(contest_of(machine, arms, vendor), silent).log;
}

constexpr uint64_t kSeeds = kSanitized ? 10 : 40;

TEST(Contest, OfEqualArmsTheDefaultIsKept) {
  int kept = 0, decided = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Machine machine;
    machine.seed = seed;
    const RecordLog log = log_of(machine, {{1e-5}, {1e-5}, {1e-5}, {1e-5}, {1e-5}});
    decided += log.stable;
    kept += !decide(log).improved;
  }
  EXPECT_EQ(decided, int(kSeeds));
  EXPECT_GE(kept, int(std::ceil(0.95 * kSeeds)));
}

TEST(Contest, AnArmThatIsThreePercentFasterIsFound) {
  int found = 0;
  double reported = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Machine machine;
    machine.seed = seed;
    const Decision d = decide(log_of(machine, {{1e-5}, {1e-5}, {0.97e-5}, {1.01e-5}, {1e-5}}));
    found += d.improved && d.winner.slot == 2;
    reported += std::log(d.winner.timing->ratio) / double(kSeeds);
  }
  EXPECT_GE(found, int(std::ceil(0.9 * kSeeds)));
  EXPECT_NEAR(std::exp(reported), 0.97, 0.004);
}

/// The fastest of many equal ones is the luckiest: its ratio in the finals says too much, that of the
/// hold-out does not.
TEST(Contest, TheHoldoutKnowsNoWinnersCurse) {
  double finals = 0, holdout = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Machine machine;
    machine.seed = seed, machine.noise = 0.03;
    const std::vector<double> algorithms(12, 1e-5);
    const RecordLog log = log_of(machine, {{1e-5}}, algorithms);
    for (const Record& r : log.records)
      if (r.is_vendor())
        (r.stage == "final" ? finals : holdout) += std::log(r.timing->ratio) / double(kSeeds);
  }
  EXPECT_LT(finals, -0.001); // chosen by one half of their rounds, told by the other: of two only
  EXPECT_NEAR(holdout, 0, 0.0025);
}

TEST(Contest, ThrottledRoundsAreDropped) {
  double dropped = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Machine machine;
    machine.seed = seed, machine.throttled = 0.02;
    const RecordLog log = log_of(machine, {{1e-5}, {0.9e-5}, {1e-5}});
    const Json& finals = log.environment["finals"];
    ASSERT_TRUE(log.stable) << log.environment.dump();
    dropped += finals["dropped"].get<double>();
    EXPECT_EQ(finals["rounds"], 60) << "dropped ones are repeated";
    EXPECT_TRUE(decide(log).improved);
    EXPECT_NEAR(decide(log).winner.timing->ratio, 0.9, 0.02);
  }
  EXPECT_GT(dropped, 0.2); // of ten
}

TEST(Contest, MoreThanAFifthOfThemDecidesNothing) {
  for (double share : {0.1, 0.3, 1.0}) {
    Machine machine;
    machine.throttled = share;
    const RecordLog log = log_of(machine, {{1e-5}, {0.9e-5}, {1e-5}});
    EXPECT_FALSE(log.stable) << share;
    EXPECT_NE(log.environment.value("unstable", "").find("throttled"), std::string::npos)
        << log.environment.dump();
    ASSERT_EQ(log.records.size(), 3u) << "and yet all are there";
    EXPECT_GT(log.records[1].timing->seconds, 0);
    EXPECT_FALSE(decide(log).improved);
  }
}

TEST(Contest, ALoudMachineRaisesTheBar) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Machine machine;
    machine.seed = seed, machine.noise = 0.1;
    wrong += decide(log_of(machine, {{1e-5}, {1.02e-5}, {1.03e-5}, {1.02e-5}})).improved;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Contest, TheVendorsBestIsTimedAgainAndJudged) {
  const RecordLog log = log_of({}, {{1e-5}, {0.8e-5}}, {1.2e-5, 0.9e-5, 1e-5});
  const Json vendor = log.environment["holdout"]["vendor"];
  EXPECT_EQ(vendor["algorithm"], "algorithm 1");
  EXPECT_NEAR(vendor["ratio"][1].get<double>(), 0.8 / 0.9, 0.01);
  EXPECT_EQ(vendor["verdict"], "win");
  EXPECT_EQ(vendor_record(log)->stage, "holdout");
  EXPECT_EQ(vendor["default_verdict"], "loss") << "for where the default takes the winner's place";
  EXPECT_NEAR(vendor["default_ratio"][1].get<double>(), 1 / 0.9, 0.01);
  EXPECT_EQ(log_of({}, {{1e-5}, {0.8e-5}}, {0.5e-5}).environment["holdout"]["vendor"]["verdict"], "loss");
  Machine quiet;
  quiet.noise = 0.003;
  EXPECT_EQ(log_of(quiet, {{1e-5}, {0.8e-5}}, {0.8e-5}).environment["holdout"]["vendor"]["verdict"], "tie");
}

/// Time is for those that may be the vendor's best.
TEST(Contest, AlgorithmsFarBehindStayOut) {
  Machine machine;
  machine.noise = 0.002;
  Progress silent("test");
  const FinalsResult f =
      run_contest(contest_of(machine, {{1e-5}, {1.5e-5}}, {1.2e-5, 0.9e-5, 0.91e-5, 1e-5}), silent).finals;
  const std::vector<size_t> rounds = {75, 75, 75, 15,
                                      75, 75, 15}; // finalists and the default again, then the vendor's
  ASSERT_EQ(f.all.size(), rounds.size());
  for (size_t i = 0; i < rounds.size(); ++i) EXPECT_EQ(f.all[i].rounds.size(), rounds[i]) << i;
  EXPECT_EQ(f.vendor_arm, 1u);
}

TEST(Contest, OnlyTheFastestFinalistsGoOn) {
  Machine machine;
  machine.noise = 0.002;
  const RecordLog log =
      log_of(machine, {{1e-5}, {0.93e-5}, {0.9e-5}, {0.905e-5}, {0.9e-5}, {0.95e-5}, {0.903e-5}});
  std::string status;
  for (const Record& r : log.records) {
    if (r.stage != "final") continue;
    status += " " + r.status;
    ASSERT_TRUE(r.timing) << "also of what stayed behind";
    EXPECT_EQ(r.timing->samples, r.ok() ? 60 : 15);
  }
  EXPECT_EQ(status, " ok dropped ok ok ok dropped ok");
  EXPECT_EQ(log.environment["finals"]["rounds"], 60) << "the noise, too, is that of the last rounds";
  EXPECT_TRUE(decide(log).improved);
  EXPECT_NEAR(decide(log).winner.timing->ratio, 0.9, 0.005);
}

/// 4 % faster at a clock that is 5 % higher: by cycles it is slower.
TEST(Contest, ClocksThatDifferAreSaid) {
  Machine machine;
  machine.noise = 0.002;
  RecordLog log = log_of(machine, {{1e-5, 1500}, {0.96e-5, 1575}});
  EXPECT_EQ(log.environment["holdout"]["verdict"], "power-limited win");
  EXPECT_TRUE(decide(log).improved);
  machine.capped = false;
  log = log_of(machine, {{1e-5, 1500}, {0.96e-5, 1575}});
  EXPECT_EQ(log.environment["holdout"]["verdict"], "AMBG");
  EXPECT_FALSE(decide(log).improved);
  log = log_of(machine, {{1e-5, 1500}, {0.9e-5, 1575}}); // in cycles, too
  EXPECT_EQ(log.environment["holdout"]["verdict"], "win");
  EXPECT_TRUE(decide(log).improved);
}

TEST(Contest, WhatFailsInTheHoldoutIsNotLocked) {
  Contest c = contest_of({}, {{1e-5}, {0.8e-5}});
  c.field = [field = c.field, races = std::make_shared<int>(0)] {
    Field f = field();
    if (++*races == 2)
      f.arm = [arm = f.arm](size_t i, const std::string& name) {
        Arm a = arm(i, name);
        if (i == 1)
          a.make_sampler = []() -> Sampler { throw std::runtime_error("CUDA_ERROR_ILLEGAL_ADDRESS"); };
        return a;
      };
    return f;
  };
  Progress silent("test");
  const RecordLog log = run_contest(c, silent).log;
  EXPECT_FALSE(log.stable);
  EXPECT_FALSE(decide(log).improved);
}

/// Where the default beside itself is no measure of the noise.
TEST(Contest, LessThanTheLeastNoiseIsNoGain) {
  Machine machine;
  machine.noise = 0.001;
  Contest c = contest_of(machine, {{1e-5}, {0.985e-5}}, {1e-5});
  Progress silent("test");
  EXPECT_TRUE(decide(run_contest(c, silent).log).improved);
  c.least_noise = 0.02;
  const RecordLog log = run_contest(c, silent).log;
  EXPECT_FALSE(decide(log).improved);
  EXPECT_TRUE(log.stable);
  EXPECT_EQ(log.noise_floor, 0.02);
  EXPECT_LT(log.environment["finals"]["noise_floor"], 0.02) << "what was measured stays to be read";
  EXPECT_EQ(log.environment["holdout"]["vendor"]["verdict"], "tie");
}

/// Faster than the vendor sustained, by nothing but launches that overlap; as fast in a burst.
TEST(Contest, OtherRegimesAreTimedBesideAndDecideNothing) {
  Machine machine;
  machine.noise = 0.002;
  Contest c =
      contest_of(machine, {{1e-5}, {0.8e-5, 1500, 1.25, 1.125}, {0.9e-5, 1500, 0.5, 0.5}}, {0.9e-5, 0.95e-5});
  Progress silent("test");
  const RecordLog plain = run_contest(c, silent).log;
  EXPECT_FALSE(plain.environment["holdout"].contains("regimes"));
  c.extra = {Regime::serial, Regime::bursts};
  const RecordLog log = run_contest(c, silent).log;
  const Json& regimes = log.environment["holdout"]["regimes"];
  ASSERT_EQ(regimes.size(), 2u);
  EXPECT_EQ(decide(log).winner.slot, 1) << "another is faster in the others alone";
  EXPECT_NEAR(decide(log).winner.timing->ratio, 0.8, 0.003);
  for (const auto& [name, seconds] : {std::pair{"serial", 1e-5}, std::pair{"bursts", 0.9e-5}}) {
    const Json& r = regimes[name];
    ASSERT_EQ(r["arms"].size(), 2u) << r.dump();
    EXPECT_EQ(r["arms"][0]["sha256"], "sha0");
    const Json& winner = r["arms"][1];
    EXPECT_EQ(winner["sha256"], "sha1");
    EXPECT_NEAR(winner["seconds"].get<double>(), seconds, 0.1e-5); // the drift is the machine's
    EXPECT_NEAR(winner["default"][1].get<double>(), seconds / 1e-5, 0.003);
    EXPECT_NEAR(winner["vendor"][1].get<double>(), seconds / 0.9e-5, 0.003);
    EXPECT_LE(winner["vendor"][0], winner["vendor"][1]);
    EXPECT_LT(r["noise_floor"], 0.02);
    EXPECT_GT(r["noise_floor"], 0);
    EXPECT_EQ(r["rounds"], 41);
    EXPECT_FALSE(r.contains("unstable")) << r.dump();
  }
  EXPECT_EQ(regimes["serial"]["arms"][1]["verdict"], "loss");
  EXPECT_EQ(regimes["bursts"]["arms"][1]["verdict"], "tie");
}

/// What cannot be timed there is said there; the hold-out stands.
TEST(Contest, ARegimeThatFailsTakesNothingWithIt) {
  Contest c = contest_of({}, {{1e-5}, {0.8e-5}});
  c.extra = {Regime::serial, Regime::bursts};
  c.field = [field = c.field] {
    Field f = field();
    f.arm = [arm = f.arm](size_t i, const std::string& name) {
      Arm a = arm(i, name);
      if (i == 1)
        a.make_in_regime = [make = a.make_in_regime](Regime r) -> Sampler {
          if (r == Regime::serial) throw std::runtime_error("CUDA_ERROR_NOT_SUPPORTED");
          return make(r);
        };
      return a;
    };
    return f;
  };
  Progress silent("test");
  const RecordLog log = run_contest(c, silent).log;
  EXPECT_TRUE(log.stable);
  EXPECT_TRUE(decide(log).improved);
  const Json& regimes = log.environment["holdout"]["regimes"];
  EXPECT_EQ(regimes["serial"]["arms"][1]["failed"], "crash: CUDA_ERROR_NOT_SUPPORTED");
  EXPECT_NEAR(regimes["serial"]["arms"][0]["default"][1].get<double>(), 1, 1e-9);
  EXPECT_NEAR(regimes["bursts"]["arms"][1]["default"][1].get<double>(), 0.8, 0.02);
}

TEST(Verdict, WhereAnIntervalLies) {
  EXPECT_EQ(verdict(0.90, 0.98, 0.01), "win");
  EXPECT_EQ(verdict(1.02, 1.10, 0.01), "loss");
  EXPECT_EQ(verdict(0.995, 1.005, 0.01), "tie");
  EXPECT_EQ(verdict(0.95, 1.005, 0.01), "AMBG");
  EXPECT_EQ(verdict(0.98, 1.03, 0.01), "AMBG");
}

} // namespace
} // namespace deepgen::contest_test
