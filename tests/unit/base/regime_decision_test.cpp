// Decisions over two regimes: what must hold of them whatever the times are, on random finals.
#include "base/kernel/regime.h"
#include "base/search/decide.h"
#include "base/search/finalists.h"
#include "base/search/vendor_choice.h"
#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

namespace deepgen::regime_decision_test {
namespace {

Timing timing(double ratio, double width = 0.001) {
  return {1e-3 * ratio, 1e-3 * ratio, 1e-3 * ratio, ratio, ratio - width, ratio + width, 40, 1};
}

Record arm(const std::string& name, double sustained, double bursts, const char* stage = "final") {
  Record r;
  r.stage = stage, r.problem = "p", r.arch = "sm_90a", r.origin = name == "default" ? "default" : "model";
  r.choice = {name, {}}, r.sha256 = name, r.code_bytes = 100;
  r.timing = timing(sustained);
  if (bursts > 0) r.bursts = timing(bursts);
  if (name == "vendor") r.origin = "cublaslt 13", r.sha256 = "";
  return r;
}

RecordLog finals(std::vector<Record> records, double noise = 0.002, double in_bursts = 0.002) {
  RecordLog log;
  log.environment = {{"regime", "balanced"}, {"finals", {{"bursts", {{"noise_floor", in_bursts}}}}}};
  log.noise_floor = noise;
  log.records = std::move(records);
  return log;
}

std::string winner(const RecordLog& log) { return decide(log).winner.choice.template_name; }

TEST(RegimeDecision, TheMeanOfBothDecides) {
  const RecordLog log = finals({arm("default", 1, 1), arm("x", 0.9, 1.05), arm("y", 0.95, 0.95)});
  const Decision d = decide(log);
  EXPECT_EQ(d.winner.choice.template_name, "y");
  EXPECT_NEAR(d.timing.ratio, 0.95, 1e-9);
  EXPECT_NE(d.reason.find("(sustained 1.053x, in bursts 1.053x)"), std::string::npos) << d.reason;
  RecordLog sustained = log;
  sustained.environment.erase("regime");
  EXPECT_EQ(winner(sustained), "x") << "a log that says nothing is of one regime";
  EXPECT_EQ(decide(sustained).reason,
            "1.111x vs default [1.110, 1.112] (sustained 1.111x, in bursts 0.952x)");
}

/// Who is alike in both regimes: x, y and z; w is slower.
TEST(RegimeDecision, SerialCallsDecideAmongThoseAlike) {
  std::vector<Record> records = {arm("default", 1, 1), arm("x", 0.9, 0.9), arm("y", 0.9005, 0.9005),
                                 arm("z", 0.9, 0.901), arm("w", 0.93, 0.93)};
  for (size_t i : {0, 1, 2, 3}) records[i].code_bytes = 100 + int64_t(i); // x is the smallest
  EXPECT_EQ(winner(finals(records)), "x");
  const std::vector<Choice> alike = decide_finals(finals(records)).alike;
  ASSERT_EQ(alike.size(), 3u);
  EXPECT_EQ(alike[0].template_name + alike[1].template_name + alike[2].template_name, "xyz");
  records[1].serial = timing(0.95), records[2].serial = timing(0.91);
  EXPECT_EQ(winner(finals(records)), "x") << "one of them has no time";
  records[3].serial = timing(0.9105);
  EXPECT_EQ(winner(finals(records)), "y") << "z is within the noise of it, and larger";
  records[4].serial = timing(0.5);
  EXPECT_EQ(winner(finals(records)), "y") << "serial calls make up for nothing";
  EXPECT_EQ(winner(finals(records, 0.06, 0.06)), "w") << "but here w is alike";
  const RecordLog log = finals(records);
  EXPECT_EQ(RecordLog::parse(log.serialize(), "x").serialize(), log.serialize());
}

TEST(RegimeDecision, TheNoiseIsThatOfBoth) {
  const std::vector<Record> records = {arm("default", 1, 1), arm("x", 0.97, 0.97)};
  EXPECT_EQ(winner(finals(records, 0.01, 0.01)), "x");
  EXPECT_EQ(winner(finals(records, 0.001, 0.08)), "default");
  EXPECT_NEAR(noise_of(finals(records, 0.02, 0.04)), 0.03, 1e-3);
}

TEST(RegimeDecision, WhoLosesToTheVendorInBurstsGivesWay) {
  const Record vendor = arm("vendor", 1.1, 0.9);
  EXPECT_EQ(winner(finals({arm("default", 1, 1), arm("x", 0.7, 0.95), arm("y", 0.95, 0.89), vendor})), "y")
      << "though x is faster in the mean";
  EXPECT_EQ(winner(finals(
                {arm("default", 1, 1), arm("x", 0.7, 0.95), arm("y", 1.2, 0.89), arm("vendor", 1.2, 0.9)})),
            "y")
      << "even than the default, which loses there, too";
  EXPECT_EQ(winner(finals({arm("default", 1, 1), arm("x", 0.7, 0.95), arm("y", 0.95, 0.99), vendor})), "x")
      << "where all of them lose";
  EXPECT_EQ(winner(finals({arm("default", 1, 0.89), arm("x", 0.7, 0.95), vendor})), "default");
  EXPECT_EQ(winner(finals({arm("default", 1, 1), arm("x", 0.7, 0.95), arm("y", 0.95, 0.89)})), "x")
      << "where there is no vendor";
  EXPECT_EQ(winner(finals({arm("default", 1, 1), arm("x", 0.7, 0.904), arm("y", 0.95, 0.89), vendor})), "x")
      << "0.4 % is no loss";
  Record sustained = arm("vendor", 0.65, 0);
  EXPECT_EQ(winner(finals({arm("default", 1, 1), arm("x", 0.7, 0.95), arm("y", 0.64, 1.1), sustained})), "y")
      << "by the regime that is known";
}

TEST(RegimeDecision, WhatLacksARegimeIsLeftOut) {
  EXPECT_EQ(winner(finals({arm("default", 1, 1), arm("x", 0.5, 0), arm("y", 0.9, 0.9)})), "y");
  EXPECT_EQ(winner(finals({arm("default", 1, 0), arm("x", 0.9, 0.2), arm("y", 0.8, 0.9)})), "y")
      << "without the default's bursts there is one regime";
  EXPECT_EQ(winner(finals({arm("default", 1, 0), arm("x", 0.9, 0)})), "x");
  Record failed = arm("default", 1, 1);
  failed.status = "crash";
  EXPECT_EQ(winner(finals({failed, arm("x", 0.9, 0.9), arm("y", 0.8, 1.3), arm("z", 0.1, 0)})), "x");
  EXPECT_FALSE(decide(finals({failed})).found);
}

RecordLog held_out(Record standard, Record again, std::optional<Record> vendor = {}) {
  std::vector<Record> records = {arm("default", 1, 1), arm("x", 0.9, 0.9)};
  standard.stage = again.stage = "holdout";
  records.push_back(standard), records.push_back(again);
  if (vendor) vendor->stage = "holdout", records.push_back(*vendor);
  return finals(records);
}

TEST(RegimeDecision, TheHoldoutConfirmsInBoth) {
  EXPECT_EQ(winner(held_out(arm("default", 1, 1), arm("x", 0.92, 0.99))), "x");
  EXPECT_NEAR(decide(held_out(arm("default", 1, 1), arm("x", 0.9, 0.99))).timing.ratio, std::sqrt(0.9 * 0.99),
              1e-9);
  const Decision d = decide(held_out(arm("default", 1, 1), arm("x", 0.92, 1.15)));
  EXPECT_EQ(d.winner.choice.template_name, "default");
  EXPECT_NE(d.reason.find("does not confirm"), std::string::npos) << d.reason;
  EXPECT_EQ(winner(held_out(arm("default", 1, 1), arm("x", 0.92, 0))), "default") << "one regime is missing";
  EXPECT_EQ(winner(held_out(arm("default", 1, 1), arm("x", 1.05, 0.99), arm("vendor", 1.2, 0.99))), "x")
      << "to a default that loses to the vendor nobody gives way who does not";
  EXPECT_EQ(winner(held_out(arm("default", 1, 1), arm("x", 1.05, 1.03), arm("vendor", 1.2, 0.99))),
            "default");
}

TEST(RegimeDecision, TheVendorIsCalledForALossInEitherRegimeOrInTheMean) {
  RecordLog log = held_out(arm("default", 1, 1), arm("x", 0.92, 0.97), arm("vendor", 0.95, 0.9));
  log.environment["holdout"] = {
      {"sha256", "x"}, {"vendor", {{"ratio", {1, 1, 1}}, {"verdict", "win"}, {"default_verdict", "win"}}}};
  Json& both = log.environment["holdout"]["balanced"];
  both = {{"vendor_verdict", "tie"}, {"default_verdict", "loss"}};
  EXPECT_EQ(vendor_choice(log, decide(log), "").why_not, "");
  both["vendor_verdict"] = "loss";
  EXPECT_NE(vendor_choice(log, decide(log), "").why_not, "") << "it is faster, and its call was not noted";
  log.environment["regime"] = "burst";
  EXPECT_EQ(vendor_choice(log, decide(log), "").why_not, "") << "by the one regime that was tuned for";
  log.environment["regime"] = "balanced";
  both["vendor_verdict"] = "win";
  EXPECT_EQ(vendor_choice(log, decide(log), "").why_not, "");
  Json& bursts = log.environment["holdout"]["regimes"]["bursts"];
  bursts["arms"] = Json::array(
      {{{"sha256", "default"}, {"verdict", "loss"}}, {{"sha256", "x"}, {"verdict", "power-limited loss"}}});
  EXPECT_NE(vendor_choice(log, decide(log), "").why_not, "") << "in bursts, though not in the mean";
  bursts["arms"][1]["verdict"] = "tie";
  EXPECT_EQ(vendor_choice(log, decide(log), "").why_not, "") << "the default's loss is not the winner's";
  bursts["arms"][1]["vendor"] = {0.99, 1.012, 1.03};
  EXPECT_NE(vendor_choice(log, decide(log), "").why_not, "") << "1.2 % behind, which the noise hides";
  bursts["arms"][1]["vendor"] = {0.99, 1.008, 1.03};
  EXPECT_EQ(vendor_choice(log, decide(log), "").why_not, "");
  both["vendor_ratio"] = {0.99, 1.02, 1.05};
  EXPECT_NE(vendor_choice(log, decide(log), "").why_not, "") << "in the mean";
  both["vendor_ratio"] = {0.99, 1.0, 1.05};
  log.environment["holdout"]["regimes"]["serial"]["arms"] =
      Json::array({{{"sha256", "x"}, {"verdict", "loss"}}});
  EXPECT_EQ(vendor_choice(log, decide(log), "").why_not, "") << "serial calls are evidence alone";
  log.environment["holdout"]["vendor"]["verdict"] = "loss";
  EXPECT_NE(vendor_choice(log, decide(log), "").why_not, "") << "in sustained calls";
}

class RandomFinals {
public:
  explicit RandomFinals(uint64_t seed) : random_(seed) {
    const int count = 1 + int(random_() % 6);
    records.push_back(arm("default", 1, may(0.9) ? 1 : 0));
    for (int i = 0; i < count; ++i) {
      records.push_back(arm("k" + std::to_string(i), ratio(), may(0.85) ? ratio() : 0));
      records.back().code_bytes = int64_t(random_() % 3), records.back().workspace = int64_t(random_() % 2);
      if (!may(0.9)) records.back().status = "dropped";
    }
    if (may(0.7)) records.push_back(arm("vendor", ratio(), may(0.8) ? ratio() : 0));
  }
  RecordLog log() const { return finals(records, 0.004, 0.006); }
  void shuffle() { std::shuffle(records.begin(), records.end(), random_); }
  std::vector<Record> records;

private:
  std::mt19937_64 random_;
  bool may(double share) { return std::uniform_real_distribution<double>()(random_) < share; }
  double ratio() { return std::uniform_real_distribution<double>(0.6, 1.4)(random_); }
};

constexpr uint64_t kSeeds = 4000;

TEST(RegimeDecision, TheOrderOfRecordsDoesNotMatter) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomFinals f(seed);
    const std::string first = winner(f.log());
    f.shuffle();
    ASSERT_EQ(winner(f.log()), first) << seed;
  }
}

TEST(RegimeDecision, NobodyIsTakenWhoLosesToTheVendorWhileAnotherDoesNot) {
  int seen = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RandomFinals f(seed);
    const Record& vendor = f.records.back();
    if (!vendor.is_vendor() || !f.records.front().bursts) continue;
    const auto loses = [&](const Record& r) { // by more than the noise of RandomFinals::log()
      return r.timing->ratio > vendor.timing->ratio * (1 + threshold_of(0.004)) ||
             (vendor.bursts && r.bursts->ratio > vendor.bursts->ratio * (1 + threshold_of(0.006)));
    };
    const bool any = std::any_of(f.records.begin(), f.records.end(), [&](const Record& r) {
      return !r.is_vendor() && r.ok() && r.bursts && !loses(r);
    });
    const Record taken = decide(f.log()).winner;
    ASSERT_TRUE(taken.ok() && taken.bursts) << seed;
    ASSERT_FALSE(any && loses(taken)) << seed;
    seen += any;
  }
  EXPECT_GT(seen, 500);
}

TEST(RegimeDecision, WhoIsSlowerInBothIsNotTaken) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RandomFinals f(seed);
    if (!f.records.front().bursts) continue;
    const Record taken = decide(f.log()).winner;
    if (taken.origin == "default") continue; // stays where nobody is faster by more than the noise
    for (const Record& r : f.records)
      if (!r.is_vendor() && r.ok() && r.bursts) {
        ASSERT_FALSE(r.timing->ratio < 0.98 * taken.timing->ratio &&
                     r.bursts->ratio < 0.98 * taken.bursts->ratio)
            << seed << " " << r.choice.template_name;
      }
  }
}

TEST(RegimeDecision, LogsOfOneRegimeAreDecidedAsEver) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomFinals f(seed);
    RecordLog with = f.log(), without = f.log();
    with.environment.erase("regime"), without.environment = Json::object();
    for (Record& r : without.records) r.bursts.reset();
    ASSERT_EQ(winner(with), winner(without)) << seed;
    ASSERT_EQ(decide(with).threshold, decide(without).threshold);
  }
}

/// Of a round: one that is not known in bursts counts as if these had done to it what they did to others.
TEST(RegimeDecision, RoundsCompareByTheMeanOfWhatIsKnown) {
  const auto folder = std::filesystem::temp_directory_path() / ("deepgen-regime-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  RecordLog log = finals({arm("default", 1, 1, "r0"), arm("a", 0.8, 0.8, "r0"), arm("b", 0.9, 0.6, "r0"),
                          arm("c", 0.9, 0.81, "r0"), arm("d", 0.95, 0, "r0")});
  const std::string path = (folder / "r0.jsonl").string();
  std::ofstream(path) << log.serialize();
  std::map<std::string, double> ratios;
  for (const LoggedRecord& r : read_records({path})) ratios[r.record.sha256] = r.record.timing->ratio;
  EXPECT_NEAR(ratios["default"], 1, 1e-9);
  EXPECT_NEAR(ratios["a"], 0.8, 1e-9);
  EXPECT_NEAR(ratios["b"], std::sqrt(0.9 * 0.6), 1e-9);
  EXPECT_NEAR(ratios["d"], 0.95 * std::sqrt(0.9), 1e-9) << "the median of 1, 2/3 and 0.9";
  EXPECT_EQ(finalists_of(read_records({path}))[1].record.sha256, "b");
  log.environment.erase("regime");
  std::ofstream(path) << log.serialize();
  EXPECT_EQ(finalists_of(read_records({path}))[1].record.sha256, "a");
  std::filesystem::remove_all(folder);
}

/// What leaves a later round before its bursts is as fast in these as it was.
TEST(RegimeDecision, ALaterRoundWithoutBurstsTakesNoneAway) {
  const auto folder = std::filesystem::temp_directory_path() / ("deepgen-later-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::vector<std::string> paths = {folder / "r0.jsonl", folder / "r1.jsonl"};
  std::ofstream(paths[0])
      << finals({arm("default", 1, 1, "r0"), arm("a", 1, 0.9, "r0"), arm("b", 0.99, 1.02, "r0")}).serialize();
  RecordLog later = finals({arm("c", 0.99, 1.01, "r1")});
  later.again = {arm("a", 1.01, 0, "r0"), arm("b", 0.98, 1.03, "r0")};
  std::ofstream(paths[1]) << later.serialize();
  const std::vector<LoggedRecord> records = read_records(paths);
  EXPECT_NEAR(records[1].record.timing->ratio, std::sqrt(1.01 * 0.9), 1e-9);
  EXPECT_NEAR(records[2].record.timing->ratio, std::sqrt(0.98 * 1.03), 1e-9) << "as it was there";
  EXPECT_EQ(finalists_of(records)[1].record.sha256, "a");
  std::filesystem::remove_all(folder);
}

TEST(RegimeDecision, RecordsKeepBothRegimes) {
  RecordLog log = finals({arm("default", 1, 1), arm("x", 0.9, 0)});
  log.records[0].points.push_back({{1, 2, 3, 4}, timing(0.5), 1, timing(0.25)});
  const RecordLog again = RecordLog::parse(log.serialize(), "x");
  EXPECT_EQ(again.serialize(), log.serialize());
  EXPECT_EQ(again.records[0].bursts->ratio, 1);
  EXPECT_EQ(again.records[0].points[0].bursts->ratio, 0.25);
  EXPECT_FALSE(again.records[1].bursts);
  EXPECT_EQ(log.records[1].to_json().count("bursts"), 0u) << "as records of earlier versions";
  for (const char* bad :
       {"\"regime\":\"sometimes\"", "\"regime\":7", "\"finals\":[]",
        "\"finals\":{\"bursts\":{\"noise_floor\":-1}}", "\"finals\":{\"bursts\":{\"noise_floor\":\"x\"}}",
        "\"holdout\":{\"regimes\":{\"bursts\":{\"arms\":[{\"sha256\":1}]}}}",
        "\"holdout\":{\"balanced\":{\"ratio\":[1]}}"})
    EXPECT_THROW(RecordLog::parse("{\"schema\":\"deepgen.env/1\",\"environment\":{" + std::string(bad) +
                                      "},\"noise_floor\":0,\"stable\":true}\n",
                                  "x"),
                 Error)
        << bad;
}

} // namespace
} // namespace deepgen::regime_decision_test
