// Rounds, finals and hold-out in two regimes, on a simulated device whose bursts favour other arms. Nothing
// here depends on the time that anything takes.
#include "base/search/decide.h"
#include "base/search/vendor_choice.h"
#include "measure/race/contest.h"
#include "measure/race/two_regimes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

namespace deepgen::regimes_test {
namespace {

/// Of a call in each regime; what is thrown in place of it.
struct Simulated {
  double sustained = 1e-5, bursts = 1e-5, serial = 1e-5;
  std::string fails_in = {};
};

double seconds_in(const Simulated& one, Regime regime) {
  return regime == Regime::bursts ? one.bursts : regime == Regime::serial ? one.serial : one.sustained;
}

Arm arm_of(const Simulated& one, uint64_t seed, double noise = 0.002) {
  Arm a;
  a.make_in_regime = [=](Regime regime) {
    if (one.fails_in == to_string(regime)) throw std::runtime_error("CUDA_ERROR_ILLEGAL_ADDRESS");
    auto random = std::make_shared<std::mt19937_64>(seed * 3 + uint64_t(regime));
    return Sampler{[=] {
                     std::normal_distribution<double> normal;
                     Sample s;
                     s.seconds = seconds_in(one, regime) * std::exp(noise * normal(*random));
                     s.megahertz = regime == Regime::bursts ? 1980 : 1500;
                     return s;
                   },
                   1};
  };
  a.make_sampler = [make = a.make_in_regime] { return make(Regime::sustained); };
  return a;
}

/// The first one is the default.
Contest contest_of(const std::vector<Simulated>& arms, const std::vector<Simulated>& vendor = {},
                   TunedFor regime = TunedFor::balanced) {
  Contest c;
  for (size_t i = 0; i < arms.size(); ++i) {
    Record r;
    r.stage = "final", r.slot = int64_t(i), r.origin = i ? "model" : "default",
    r.sha256 = "sha" + std::to_string(i);
    r.choice = {"t", {}};
    r.choice.config.set("x", int64_t(i));
    c.finalists.push_back(r);
  }
  c.field = [=] {
    Field f;
    f.finalists = arms.size();
    f.arm = [arms](size_t i, const std::string& name) {
      return arm_of(arms[i], 10 + i + 100 * !name.empty());
    };
    for (const Simulated& one : vendor) {
      f.vendor_arms.push_back(arm_of(one, 50 + f.vendor_arms.size()));
      f.vendor_arms.back().name = "algorithm " + std::to_string(f.vendor_arms.size() - 1);
    }
    return f;
  };
  if (!vendor.empty()) c.vendor = "vendor 1.0";
  c.options.cool_seconds = 0;
  c.regime = regime;
  c.extra = {Regime::serial}, c.extra_rounds = 9;
  return c;
}

ContestResult result_of(const Contest& c) {
  Progress silent("test");
  return run_contest(c, silent);
}

const Simulated kDefault, kSustained{0.8e-5, 1.15e-5}, kBurst{1.05e-5, 0.7e-5}, kBoth{0.9e-5, 0.9e-5};

TEST(Regimes, AnotherConfigWinsInEach) {
  const std::vector<Simulated> arms = {kDefault, kSustained, kBurst, kBoth, {0.95e-5, 0.95e-5}};
  const auto slot = [&](TunedFor regime) {
    const RecordLog log = result_of(contest_of(arms, {}, regime)).log;
    EXPECT_TRUE(log.stable) << log.environment.dump();
    EXPECT_EQ(log.environment.value("regime", "sustained"), to_string(regime));
    return decide(log).winner.slot;
  };
  EXPECT_EQ(slot(TunedFor::sustained), 1);
  EXPECT_EQ(slot(TunedFor::burst), 2);
  EXPECT_EQ(slot(TunedFor::balanced), 2) << "0.857 in the mean, before 0.9";
}

TEST(Regimes, FinalsAndHoldoutHaveBoth) {
  const RecordLog log = result_of(contest_of({kDefault, kSustained, kBoth}, {{0.85e-5, 1e-5}})).log;
  const Decision d = decide(log);
  EXPECT_EQ(d.winner.slot, 2);
  EXPECT_EQ(d.winner.stage, "holdout");
  EXPECT_NEAR(d.timing.ratio, 0.9, 0.005);
  for (const Record& r : log.records) {
    if (!r.ok()) continue;
    ASSERT_TRUE(r.timing && r.bursts) << r.choice.text();
    EXPECT_GE(r.bursts->samples, 5);
  }
  const Json &holdout = log.environment["holdout"], &regimes = holdout["regimes"];
  ASSERT_EQ(regimes.size(), 3u) << "with serial calls, for evidence";
  EXPECT_NEAR(regimes["sustained"]["arms"][1]["vendor"][1].get<double>(), 0.9 / 0.85, 0.01);
  EXPECT_EQ(regimes["sustained"]["arms"][1]["verdict"], "loss");
  EXPECT_NEAR(regimes["bursts"]["arms"][1]["vendor"][1].get<double>(), 0.9, 0.01);
  EXPECT_EQ(regimes["bursts"]["arms"][1]["clock_mhz"], 1980);
  EXPECT_NEAR(holdout["balanced"]["ratio"][1].get<double>(), 0.9, 0.005);
  EXPECT_EQ(holdout["balanced"]["verdict"], "win");
  EXPECT_NEAR(holdout["balanced"]["vendor_ratio"][1].get<double>(), 0.9 / std::sqrt(0.85), 0.01);
  EXPECT_EQ(holdout["balanced"]["vendor_verdict"], "win") << "though it loses sustained";
  EXPECT_EQ(holdout["balanced"]["default_verdict"], "loss");
  EXPECT_EQ(RecordLog::parse(log.serialize(), "x").serialize(), log.serialize());
  EXPECT_NE(vendor_choice(log, d, "").why_not, "") << "no function with a fallback is slower in a regime";
}

/// The last three are alike in both regimes; the last is the one for serial calls, and no other is timed in
/// them.
TEST(Regimes, SerialCallsDecideWhatBothLeaveOpen) {
  std::vector<Simulated> arms = {kDefault, {0.95e-5, 0.95e-5, 0.5e-5}, kBoth, kBoth, kBoth};
  for (size_t i : {2, 3}) arms[i].serial = 0.95e-5;
  arms[4].serial = 0.9e-5;
  const auto slot = [&](const Contest& c) { return decide(result_of(c).log).winner.slot; };
  Contest c = contest_of(arms);
  for (size_t i = 0; i < arms.size(); ++i) c.finalists[i].code_bytes = int64_t(i);
  EXPECT_EQ(slot(c), 4);
  for (const Record& r : result_of(c).log.records)
    if (r.stage == "final") {
      EXPECT_EQ(r.serial.has_value(), r.slot != 1) << r.slot;
    }
  Contest without = c;
  without.extra.clear();
  EXPECT_EQ(slot(without), 2) << "the smallest: nothing was timed in serial calls";
  arms[3].fails_in = "serial";
  c.field = contest_of(arms).field;
  const RecordLog log = result_of(c).log;
  EXPECT_EQ(decide(log).winner.slot, 4);
  EXPECT_NE(log.records[3].status, "ok") << "it fails where programs call it";
}

/// Kernel 1 is the fastest in the mean, and loses to the vendor in bursts, where kernel 2 does not.
TEST(Regimes, WhoLosesToTheVendorInBurstsIsNotTaken) {
  const std::vector<Simulated> arms = {kDefault, {0.6e-5, 1e-5}, {0.88e-5, 0.88e-5}};
  EXPECT_EQ(decide(result_of(contest_of(arms)).log).winner.slot, 1);
  EXPECT_EQ(decide(result_of(contest_of(arms, {{1e-5, 0.9e-5}})).log).winner.slot, 2);
  EXPECT_EQ(decide(result_of(contest_of(arms, {{1e-5, 0.8e-5}})).log).winner.slot, 1) << "all of them lose";
}

/// Two algorithms of the vendor's, each the best in one regime; a third one in the mean.
TEST(Regimes, TheVendorsAlgorithmOfTheHoldoutIsTheBestInTheMean) {
  const std::vector<Simulated> vendor = {{0.8e-5, 1.2e-5}, {0.82e-5, 0.9e-5}, {2e-5, 0.8e-5}};
  const ContestResult r = result_of(contest_of({kDefault, kBoth}, vendor));
  EXPECT_EQ(r.finals.vendor_arm, 1u);
  EXPECT_EQ(r.log.environment["holdout"]["vendor"]["algorithm"], "algorithm 1");
  for (const Record& one : r.log.records)
    if (one.is_vendor() && one.stage == "final") {
      EXPECT_NEAR(one.timing->ratio, 0.8, 0.01);
    }
}

/// Behind in the first regime alone is no reason to be left out.
TEST(Regimes, OnlyWhatIsBehindInBothIsCut) {
  const RecordLog log =
      result_of(contest_of({kDefault, kBurst, {1.2e-5, 0.9e-5}, {1.5e-5, 0.71e-5}, {0.7e-5, 1.4e-5}})).log;
  std::string status;
  for (const Record& r : log.records)
    if (r.stage == "final") status += " " + r.status;
  EXPECT_EQ(status, " ok ok dropped dropped ok");
  EXPECT_EQ(decide(log).winner.slot, 1);
}

TEST(Regimes, WhatFailsInBurstsIsNoFinalist) {
  Simulated failing = kBurst;
  failing.fails_in = "bursts";
  RecordLog log = result_of(contest_of({kDefault, failing, kBoth})).log;
  EXPECT_EQ(log.records[1].status, "crash");
  EXPECT_EQ(log.records[1].detail, "while it was timed in bursts: CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(decide(log).winner.slot, 2);
  Simulated standard = kDefault;
  standard.fails_in = "bursts";
  log = result_of(contest_of({standard, kBoth})).log;
  EXPECT_FALSE(log.stable) << "without the default's bursts nothing can be compared";
  EXPECT_EQ(log.environment["unstable"], "in bursts: the noise could not be measured");
}

/// What was measured without regimes is as it was: the fields, and the samples.
TEST(Regimes, SustainedKnowsOfNoOther) {
  Contest c = contest_of({kDefault, kSustained, kBurst}, {{1e-5}}, TunedFor::sustained);
  c.extra.clear();
  const RecordLog log = result_of(c).log;
  EXPECT_EQ(log.serialize().find("burst"), std::string::npos);
  EXPECT_EQ(log.serialize().find("regime"), std::string::npos);
  EXPECT_EQ(log.serialize().find("balanced"), std::string::npos);
}

std::vector<Arm> in_bursts(const std::vector<Arm>& arms) {
  std::vector<Arm> out;
  for (const Arm& arm : arms) out.push_back(in_regime(arm, Regime::bursts));
  return out;
}

RaceOptions soon() {
  RaceOptions o;
  o.deadline = wall_seconds() + 20;
  o.cool_seconds = 0;
  return o;
}

TEST(Regimes, TheBestOfARoundAreTimedInBursts) {
  std::vector<Arm> arms;
  for (size_t i = 0; i < 30; ++i)
    arms.push_back(arm_of({1e-5 * (1 + 0.01 * double(i)), 1e-5 * (1 - 0.01 * double(i))}, i));
  Progress silent("test");
  Bursts bursts{in_bursts(arms)};
  const InTwo r = halving_in_two(arms, bursts, soon(), silent);
  size_t timed = 0;
  for (size_t i = 0; i < arms.size(); ++i) {
    EXPECT_TRUE(r.first[i].timed());
    if (!r.bursts[i].timed()) continue;
    ++timed;
    EXPECT_LT(i, 18u) << "the best of the first regime";
    EXPECT_LE(summarize(r.bursts[i], r.bursts[0], 1).ratio, 1);
  }
  EXPECT_EQ(timed, 15u) << "fourteen, and the anchor";
  EXPECT_EQ(r.bursts[0].rounds.size(), 3u);
}

/// Tiles that are a little slower at the power limit and much faster at the full clock stay to the end.
TEST(Regimes, ArmsOfARoundLeaveByBothRegimes) {
  std::vector<Arm> arms = {arm_of(kBoth, 0)};
  const auto seconds = [](double ratio) { return 1e-5 * ratio; };
  for (size_t i = 1; i < 20; ++i)
    arms.push_back(i == 13 ? arm_of({seconds(1.06), seconds(0.85)}, i)
                           : arm_of({seconds(1 + 0.01 * double(i)), seconds(1)}, i));
  Progress silent("test");
  const InTwo r = halving_in_two(arms, Bursts{in_bursts(arms)}, soon(), silent);
  for (size_t i = 1; i < arms.size(); ++i)
    EXPECT_GE(r.first[13].rounds.size(), r.first[i].rounds.size()) << i;
  EXPECT_GT(r.first[13].rounds.size(), r.first[19].rounds.size());
  EXPECT_EQ(r.first[13].rounds.size(), 17u) << "3, 5 and 9";
}

TEST(Regimes, ACrashInBurstsTakesOnlyItsTwin) {
  Simulated crash;
  crash.fails_in = "bursts";
  std::vector<Arm> arms = {arm_of({}, 1), arm_of(crash, 2), arm_of(kBoth, 3)};
  Progress silent("test");
  InTwo r = halving_in_two(arms, Bursts{in_bursts(arms)}, soon(), silent);
  EXPECT_TRUE(r.first[0].timed() && r.first[1].timed() && r.first[2].timed());
  EXPECT_EQ(r.bursts[1].failure, "crash");
  EXPECT_TRUE(r.bursts[0].timed() && r.bursts[2].timed());
  std::swap(arms[0], arms[1]);
  r = halving_in_two(arms, Bursts{in_bursts(arms)}, soon(), silent);
  EXPECT_EQ(r.bursts[0].failure, "crash");
  EXPECT_FALSE(r.bursts[1].timed() || r.bursts[2].timed()) << "no ratio without the anchor";
  EXPECT_TRUE(r.first[2].timed());
}

TEST(Regimes, OfEachGroupTheBestAreTimedInBursts) {
  std::vector<Arm> arms;
  for (size_t i = 0; i < 8; ++i) arms.push_back(arm_of({1e-5 * (1 + 0.05 * double(i % 4)), 1e-5}, i));
  Progress silent("test");
  Bursts bursts{in_bursts(arms), {{1, 4, 0, 1}, {4, 8, 0, 2}}};
  RaceOptions o = soon();
  o.most_rounds = 7;
  const InTwo r = full_in_two(arms, bursts, 5, o, silent);
  std::string timed;
  for (const ArmResult& one : r.bursts) timed += one.timed() ? 'x' : '.';
  EXPECT_EQ(timed, "xx..xx..");
  EXPECT_EQ(r.first[0].rounds.size(), 7u);
}

} // namespace
} // namespace deepgen::regimes_test
