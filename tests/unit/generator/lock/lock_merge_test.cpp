#include "generator/lock/lock_merge.h"

#include "base/json/json.h"
#include "generator/lock/evidence_ratio.h"
#include "tests/unit/generator/fake_template.h"

#include <cmath>
#include <gtest/gtest.h>

namespace deepgen::lock_merge_test {
namespace {

class LockMergeTest : public testing::Test {
protected:
  void SetUp() override { register_fake_template(); }

  /// `mr`: another config; `ratio`: to the default; `vendor`: to library 1.0, none where it is 0.
  static LockEntry entry(int64_t m, int64_t mr, double ratio, double vendor,
                         const std::string& device = "fake device") {
    Gemm p;
    p.m = m;
    LockEntry e{p.key(),
                "fake",
                fake_device(4, device),
                fake_choice(4, mr, 16, 0),
                3,
                std::string(63, 'a') + std::to_string(mr),
                "tools",
                {}};
    e.evidence = {
        {"ratio", {ratio * 0.99, ratio, ratio * 1.01}}, {"noise_floor", 0.01}, {"profile", "cold/1"}};
    if (vendor > 0) {
      e.evidence["vendor"] = {"library 1.0", vendor};
      e.evidence["vendor_ratio"] = {vendor * 0.99, vendor, vendor * 1.01};
    }
    return e;
  }
  static Lock lock_of(const std::vector<LockEntry>& entries) {
    Lock lock;
    for (const LockEntry& e : entries) lock.put(e);
    return lock;
  }
  static MergedEntry merged(const LockEntry& ours, const LockEntry& theirs,
                            MergeForce force = MergeForce::none, int64_t expected_mr = 0) {
    Lock lock = lock_of({ours});
    const std::vector<MergedEntry> all = merge_locks(lock, lock_of({theirs}), force);
    EXPECT_EQ(all.size(), 1u);
    EXPECT_TRUE(!expected_mr || lock.entries().at(0).choice.config["mr"] == expected_mr);
    return all.at(0);
  }
};

TEST_F(LockMergeTest, RatiosOfTwoEntriesAreDivided) {
  const EvidenceRatio r = *ratio_of(entry(1, 4, 0.9, 0.6), entry(1, 5, 0.9, 0.8));
  EXPECT_EQ(r.reference, "library 1.0");
  EXPECT_DOUBLE_EQ(r.ratio, 0.75);
  EXPECT_DOUBLE_EQ(r.low, 0.6 * 0.99 / (0.8 * 1.01)) << "the worse ends of both";
  EXPECT_DOUBLE_EQ(r.high, 0.6 * 1.01 / (0.8 * 0.99));
  EXPECT_DOUBLE_EQ(r.noise, 0.01);
  EXPECT_EQ(ratio_of(entry(1, 4, 0.9, 0), entry(1, 5, 0.8, 0.8))->reference, "the default config");
}

/// Of a problem with ranges: `ratios` to the default, and `vendors` to a library, at 1, 2, 4, ... rows.
void measure_at_sizes(LockEntry& e, const std::vector<double>& ratios, const std::vector<double>& vendors,
                      const std::vector<double>& weights = {}) {
  Json points = Json::array();
  for (size_t i = 0; i < std::max(ratios.size(), vendors.size()); ++i) {
    Json point = {{"at", {1 << i, 8, 8, 1}}, {"kernel", 0}};
    if (i < ratios.size()) point["ratio"] = {0.99 * ratios[i], ratios[i], 1.01 * ratios[i]};
    if (i < vendors.size()) point["vendor_ratio"] = 1 / vendors[i];
    if (i < weights.size()) point["weight"] = weights[i];
    points.push_back(point);
  }
  e.evidence["points"] = points;
  if (!vendors.empty()) e.evidence["vendor_name"] = "library 1.0";
}

TEST_F(LockMergeTest, RangesAreDecidedByTheSizesThatBothWereMeasuredAt) {
  LockEntry ours = entry(1, 4, 0.9, 0), theirs = entry(1, 5, 0.9, 0);
  measure_at_sizes(ours, {0.9, 0.9, 0.9}, {1.0, 1.0, 1.0});
  measure_at_sizes(theirs, {0.9, 0.9, 0.9}, {0.8, 0.9, 1.03});
  const EvidenceRatio r = *ratio_of(theirs, ours);
  EXPECT_EQ(r.reference, "library 1.0, at 3 sizes") << "before the default";
  EXPECT_NEAR(r.ratio, std::cbrt(0.8 * 0.9 * 1.03), 1e-12);
  EXPECT_DOUBLE_EQ(r.worst, 1.03);
  EXPECT_TRUE(is_win(r));
  EXPECT_EQ(merged(ours, theirs, MergeForce::none, 5).outcome, MergeOutcome::replaced);
  EXPECT_EQ(merged(theirs, ours, MergeForce::none, 5).outcome, MergeOutcome::kept);
  measure_at_sizes(theirs, {}, {0.8, 0.9, 1.2});
  EXPECT_EQ(merged(ours, theirs, MergeForce::none, 4).outcome, MergeOutcome::kept) << "a size loses too much";
  EXPECT_NE(text_of(*ratio_of(theirs, ours)).find("0.833x at the worst"), std::string::npos);
  // Weights of the entry that would be taken.
  measure_at_sizes(theirs, {}, {0.9, 0.9, 1.04}, {0, 0, 1});
  EXPECT_EQ(merged(ours, theirs, MergeForce::none, 4).outcome, MergeOutcome::kept);
  measure_at_sizes(theirs, {}, {0.9, 0.9, 1.04}, {9, 9, 1});
  EXPECT_EQ(merged(ours, theirs, MergeForce::none, 5).outcome, MergeOutcome::replaced);
}

TEST_F(LockMergeTest, RangesAreComparedByTheDefaultOfOneToolchainAndLargestSize) {
  LockEntry ours = entry(1, 4, 0.5, 0), theirs = entry(1, 5, 0.9, 0);
  measure_at_sizes(ours, {0.9, 0.9}, {});
  measure_at_sizes(theirs, {0.6, 0.8}, {});
  EXPECT_EQ(ratio_of(theirs, ours)->reference, "the default config, at 2 sizes");
  EXPECT_EQ(merged(ours, theirs, MergeForce::none, 5).outcome, MergeOutcome::replaced);
  LockEntry other = theirs;
  other.toolchain = "other tools";
  EXPECT_EQ(merged(ours, other, MergeForce::none, 4).outcome, MergeOutcome::undecided);
  measure_at_sizes(theirs, {0.6, 0.8, 0.7}, {});
  EXPECT_FALSE(ratio_of(theirs, ours)) << "the default of four rows is another";
  measure_at_sizes(ours, {0.9, 0.9, 0.9, 0.9, 0.9}, {1, 1, 1, 1, 1});
  measure_at_sizes(theirs, {0.6, 0.6}, {0.5, 0.5});
  EXPECT_FALSE(ratio_of(theirs, ours)) << "two of five sizes";
  EXPECT_NE(why_no_ratio(theirs, ours).find("different sizes"), std::string::npos);
  theirs.evidence["points"] = {{{"at", {1, 2}}}, 7, {{"at", "x"}}};
  EXPECT_FALSE(ratio_of(theirs, ours)) << "whatever somebody has written";
}

TEST_F(LockMergeTest, WhatHasNothingInCommonIsNotCompared) {
  const LockEntry ours = entry(1, 4, 0.9, 0.6);
  const auto none = [&](LockEntry other, const std::string& why) {
    EXPECT_FALSE(ratio_of(ours, other)) << why;
    EXPECT_NE(why_no_ratio(ours, other).find(why), std::string::npos) << why_no_ratio(ours, other);
  };
  none(entry(2, 4, 0.9, 0.6), "different problems");
  none(entry(1, 4, 0.9, 0.6, "another device"), "different devices");
  LockEntry other = entry(1, 5, 0.5, 0.3);
  other.evidence["profile"] = "warm/1";
  none(other, "different ways");
  other = entry(1, 5, 0.5, 0.3);
  other.evidence["vendor"][0] = "library 2.0", other.toolchain = "other tools";
  none(other, "nothing that both were measured against");
  other.evidence = "what";
  none(other, "nothing that both were measured against");
  other.evidence = {{"vendor", {"library 1.0"}}, {"vendor_ratio", {1, 0, -1}}, {"noise_floor", "x"}};
  none(other, "nothing that both were measured against");
}

TEST_F(LockMergeTest, TheFasterOneStays) {
  MergedEntry m = merged(entry(1, 4, 0.9, 0.8), entry(1, 5, 0.9, 0.6), MergeForce::none, 5);
  EXPECT_EQ(m.outcome, MergeOutcome::replaced);
  EXPECT_EQ(m.why, "1.333x as fast [1.307, 1.360], by library 1.0");
  m = merged(entry(1, 4, 0.9, 0.6), entry(1, 5, 0.9, 0.8), MergeForce::none, 4);
  EXPECT_EQ(m.outcome, MergeOutcome::kept);
  m = merged(entry(1, 4, 0.9, 0.6), entry(1, 5, 0.9, 0.595), MergeForce::none, 4);
  EXPECT_EQ(m.outcome, MergeOutcome::kept) << "within the noise";
}

TEST_F(LockMergeTest, WithoutACommonReferenceBothStayWhereTheyAre) {
  LockEntry theirs = entry(1, 5, 0.5, 0);
  theirs.toolchain = "other tools";
  MergedEntry m = merged(entry(1, 4, 0.9, 0), theirs, MergeForce::none, 4);
  EXPECT_EQ(m.outcome, MergeOutcome::undecided);
  EXPECT_EQ(merged(entry(1, 4, 0.9, 0), theirs, MergeForce::theirs, 5).outcome, MergeOutcome::forced);
  EXPECT_EQ(merged(entry(1, 4, 0.9, 0), theirs, MergeForce::ours, 4).outcome, MergeOutcome::kept);
  EXPECT_EQ(merged(entry(1, 4, 0.9, 0.5), entry(1, 5, 0.9, 0.9), MergeForce::theirs, 5).outcome,
            MergeOutcome::forced)
      << "slower, as the evidence says";
}

TEST_F(LockMergeTest, OtherProblemsAndDevicesAreAdded) {
  Lock lock = lock_of({entry(1, 4, 0.9, 0.6)});
  LockEntry stale = entry(5, 4, 0.5, 0.5);
  stale.revision = 99;
  const Lock other =
      lock_of({entry(1, 4, 0.9, 0.6), entry(1, 5, 0.9, 0.9, "another device"), entry(2, 4, 0.9, 0.6), stale});
  std::map<MergeOutcome, int> counts;
  for (const MergedEntry& m : merge_locks(lock, other, MergeForce::none)) ++counts[m.outcome];
  EXPECT_EQ(counts[MergeOutcome::same], 1);
  EXPECT_EQ(counts[MergeOutcome::added], 2);
  EXPECT_EQ(counts[MergeOutcome::stale], 1);
  EXPECT_EQ(lock.entries().size(), 3u);
}

TEST_F(LockMergeTest, AStaleEntryGivesWay) {
  LockEntry ours = entry(1, 4, 0.5, 0.3);
  ours.revision = 2;
  EXPECT_EQ(merged(ours, entry(1, 5, 0.9, 0.9), MergeForce::none, 5).outcome, MergeOutcome::replaced);
}

} // namespace
} // namespace deepgen::lock_merge_test
