// Which finalists a race leaves out after its first rounds, on a simulated machine over many seeds: true
// speeds and noise are planted, so that it is known whom it should have kept. Nothing here depends on the
// time that anything takes.
#include "measure/race/contest.h"
#include "measure/race/statistics.h"
#include "tests/unit/sanitized.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

namespace deepgen::finals_test {
namespace {

struct Machine {
  uint64_t seed = 1;
  double noise = 0.03; ///< of a sample
  double favours = 0;  ///< what an arm gains or loses for as long as a state of the machine lasts
  int state_rounds = 20;
  int cold_rounds = 0; ///< in which the default takes longer by `cold`
  double cold = 0;
};

/// Every arm has a stream of samples of its own, by its number: its n-th one is that of the n-th round.
Arm arm_of(const Machine& m, size_t arm, double seconds) {
  Arm a;
  a.make_sampler = [=] {
    struct Stream {
      std::mt19937_64 random;
      int taken = -1; ///< the first sample is ahead of the rounds
    };
    auto stream = std::make_shared<Stream>();
    stream->random.seed(m.seed * 1000 + arm);
    return Sampler{[=] {
      const int round = stream->taken++;
      std::mt19937_64 state(m.seed * 77 + uint64_t(round + 1000) / uint64_t(m.state_rounds) * 13 +
                            arm * 1009);
      state.discard(4);
      const double favour = m.favours * (state() % 2 ? 1 : -1);
      Sample s;
      s.seconds = seconds * std::exp(m.noise * std::normal_distribution<double>()(stream->random) + favour);
      if (arm == 0 && round < m.cold_rounds) s.seconds *= 1 + m.cold;
      return s;
    }};
  };
  return a;
}

Field field_of(const Machine& m, const std::vector<double>& seconds) {
  Field f;
  f.finalists = seconds.size();
  // The anchor again is another arm of the same speed.
  f.arm = [=](size_t i, const std::string& name) { return arm_of(m, name.empty() ? i : 100, seconds[i]); };
  return f;
}

FinalsResult finals_of(const Machine& m, const std::vector<double>& seconds, double least_noise = 0) {
  RaceOptions options;
  options.deadline = wall_seconds() + 1000;
  options.most_rounds = 22, options.seed = m.seed;
  Progress silent("test");
  return run_finals(field_of(m, seconds), options, silent, least_noise);
}

bool was_cut(const FinalsResult& f, size_t finalist) {
  return deepgen::was_cut(f.finalists[finalist], f.finalists[0]);
}

/// In how many of the races the arm was cut.
int times_cut(Machine m, const std::vector<double>& seconds, size_t finalist, int races,
              double least_noise = 0) {
  int cut = 0;
  for (int i = 1; i <= races; ++i) {
    m.seed = uint64_t(i);
    cut += was_cut(finals_of(m, seconds, least_noise), finalist);
  }
  return cut;
}

constexpr int kRaces = kSanitized ? 40 : 200;

/// What race.h promises: 1 in 40. All are within the noise of 15 rounds, and the fastest is one of the six.
TEST(Finals, TheFastestIsHardlyEverCut) {
  const std::vector<double> close = {1e-5, 0.98e-5, 0.983e-5, 0.974e-5, 0.985e-5, 0.99e-5, 0.981e-5};
  EXPECT_LE(times_cut({}, close, 3, kRaces), kRaces / 40);
  const std::vector<double> equal(7, 1e-5);
  EXPECT_LE(times_cut({}, equal, 5, kRaces), kRaces / 40);
}

/// States of the machine that last longer than the first rounds favour one kernel or another.
TEST(Finals, NorByAStateOfTheMachineThatPasses) {
  Machine m;
  m.noise = 0.01, m.favours = 0.02;
  const std::vector<double> close = {1e-5, 0.98e-5, 0.983e-5, 0.974e-5, 0.985e-5, 0.99e-5, 0.981e-5};
  EXPECT_LE(times_cut(m, close, 3, kRaces, 0.02), kRaces / 40);
}

TEST(Finals, WhatIsClearlySlowerLeavesEarly) {
  Machine m;
  m.noise = 0.01;
  const std::vector<double> seconds = {1e-5, 0.95e-5, 1.02e-5, 0.96e-5};
  EXPECT_EQ(times_cut(m, seconds, 2, 40), 40);
  EXPECT_EQ(times_cut(m, seconds, 1, 40), 0);
  EXPECT_EQ(times_cut(m, seconds, 2, 40, 0.05), 0) << "where nothing below 5 % is known to be a difference";
}

/// The default is 6 % slower while the first rounds last, so that all look 6 % better than they are. What
/// stayed has its ratio of the rounds after these, and what left must not stand above it for that.
TEST(Finals, RatiosOfWhatLeftCompareWithThoseOfWhatStayed) {
  const std::vector<double> seconds = {1e-5, 0.984e-5, 1.04e-5, 0.985e-5, 1.05e-5};
  double left = 0, stayed = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Machine m;
    m.seed = seed, m.noise = 0.004, m.cold_rounds = 15, m.cold = 0.06;
    Contest c;
    for (size_t i = 0; i < seconds.size(); ++i) {
      Record r;
      r.stage = "final", r.slot = int64_t(i), r.origin = i ? "model" : "default",
      r.sha256 = std::to_string(i);
      r.choice = {"t", {}};
      r.choice.config.set("x", int64_t(i));
      c.finalists.push_back(r);
    }
    c.field = [&] { return field_of(m, seconds); };
    c.options.seed = seed;
    Progress silent("test");
    const RecordLog log = run_contest(c, silent).log;
    const auto ratio = [&](size_t i) { return log.records[i].timing->ratio; };
    ASSERT_EQ(log.records[2].status, "dropped");
    ASSERT_EQ(log.records[4].status, "dropped");
    ASSERT_EQ(log.records[1].status, "ok");
    EXPECT_GT(ratio(2), ratio(1));
    EXPECT_GT(ratio(2), ratio(3));
    EXPECT_LT(log.records[2].timing->low, ratio(2));
    EXPECT_GT(log.records[2].timing->high, ratio(2));
    left += std::log(ratio(2)) / 20, stayed += std::log(ratio(1)) / 20;
  }
  EXPECT_NEAR(std::exp(left), 1.04, 0.004);
  EXPECT_NEAR(std::exp(stayed), 0.984, 0.004);
}

} // namespace
} // namespace deepgen::finals_test
