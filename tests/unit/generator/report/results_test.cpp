// The sums of results are computed by hand here.
#include "generator/report/results.h"

#include "base/json/json.h"
#include "tests/unit/generator/fake_template.h"

#include <gtest/gtest.h>

namespace deepgen::results_test {
namespace {

/// A problem whose winner takes `seconds` and is `uplift` times as fast as the vendor, within 1 %.
Study study(int64_t m, double seconds, double uplift, double calls, const std::string& verdict) {
  Study s;
  Gemm p;
  p.m = m;
  s.problem = p, s.arch = "fake", s.device = fake_device(), s.label = "lib f" + std::to_string(m),
  s.weight = calls;
  s.final = RecordLog{};
  s.decision.found = true;
  s.decision.winner.timing = Timing{seconds, seconds, seconds, 0.9, 0.89, 0.91, 40, 1};
  s.decision.winner.choice = fake_choice(4, 4, 16, 0), s.decision.winner.sha256 = std::string(64, '1');
  s.decision.winner.error = 0.25;
  Record vendor;
  vendor.origin = "library 1.0", vendor.timing = Timing{seconds * uplift, 0, 0, 1, 1, 1, 40, 1};
  s.vendor = vendor;
  s.against_vendor = Speed{uplift, uplift * 0.99, uplift * 1.01};
  s.vendor_verdict = verdict, s.against_default = Speed{};
  return s;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0, end; at < text.size(); at = end + 1)
    lines.push_back(text.substr(at, (end = text.find('\n', at)) - at));
  return lines;
}

class ResultsTest : public testing::Test {
protected:
  void SetUp() override {
    register_fake_template();
    // reference: 10 x 2 s = 20, 1 x 3 s = 3, 2 x 1 s = 2; tuned: 10 x 1 s, 1 x 6 s, 2 x 0.8 s
    in.studies = {study(1, 1, 2, 10, "win"), study(2, 6, 0.5, 1, "loss"), study(3, 0.8, 1.25, 2, "win")};
  }
  ResultsInput in;
};

TEST_F(ResultsTest, DroppedOnesRunAtTheReferencesTime) {
  const std::vector<ResultRow> rows = result_rows(in);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[0].kept);
  EXPECT_FALSE(rows[1].kept);
  EXPECT_TRUE(rows[2].kept);
  EXPECT_DOUBLE_EQ(rows[0].share, 20.0 / 25);
  EXPECT_DOUBLE_EQ(rows[1].share, 3.0 / 25);
  const ResultSums s = sums_of(rows);
  EXPECT_EQ(s.kept, 2u);
  EXPECT_DOUBLE_EQ(s.average_kept, (1.0 + 0.25) / 2);
  EXPECT_DOUBLE_EQ(s.average, (1.0 + 0 + 0.25) / 3);
  EXPECT_DOUBLE_EQ(s.weighted, 25.0 / (10 + 3 + 1.6) - 1);
  EXPECT_EQ(results_text(rows), "fake, fake device: 2 of 3 problems are faster than their reference\n"
                                "  average uplift            +41.67 % (of the faster ones alone +62.50 %)\n"
                                "  uplift weighted by calls  +71.23 % of the time of all problems\n");
}

TEST_F(ResultsTest, AFactorDecidesWhatIsKept) {
  in.uplift = 1.3;
  const std::vector<ResultRow> rows = result_rows(in);
  EXPECT_TRUE(rows[0].kept);
  EXPECT_FALSE(rows[2].kept) << "1.25 is less";
  EXPECT_DOUBLE_EQ(sums_of(rows).weighted, 25.0 / (10 + 3 + 2) - 1);
}

TEST_F(ResultsTest, TheTablesHaveEveryRowAndTheKeptOnes) {
  in.studies[0].label = "a \"quoted\", name";
  in.studies[0].regime = "balanced";
  in.studies[0].regimes["bursts"].against_vendor = Speed{1.5, 1.4, 1.6};
  in.studies[0].regimes["serial"].against_default = Speed{};
  const std::vector<ResultRow> rows = result_rows(in);
  const std::vector<std::string> raw = lines_of(results_csv(rows, false)),
                                 kept = lines_of(results_csv(rows, true));
  ASSERT_EQ(raw.size(), 4u);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(raw[0], "problem,name,calls,share,arch,device,reference,reference_seconds,tuned_seconds,uplift,"
                    "low,high,error,verdict,kept,regime,sustained,bursts,serial");
  EXPECT_EQ(raw[0], kept[0]);
  EXPECT_EQ(raw[1], in.studies[0].problem.key() +
                        ",\"a \"\"quoted\"\", name\",10,0.8,fake,fake device,library "
                        "1.0,2,1,2,1.98,2.02,0.25,win,yes,balanced,,1.5,");
  EXPECT_EQ(raw[2], in.studies[1].problem.key() +
                        ",lib f2,1,0.12,fake,fake device,library 1.0,3,6,0.5,0.495,0.505,0.25,loss,no,,,,");
  EXPECT_EQ(kept[1], raw[1]);
  EXPECT_EQ(kept[2], raw[3]);
}

TEST_F(ResultsTest, WhatIsWrongOrHasNoReferenceIsNotKept) {
  in.studies[0].decision.winner.error = 1.5;
  in.studies[2].vendor.reset(), in.studies[2].against_vendor.reset();
  in.studies[1].decision.found = false;
  const std::vector<ResultRow> rows = result_rows(in);
  for (const ResultRow& row : rows) EXPECT_FALSE(row.kept) << row.problem;
  EXPECT_EQ(rows[1].verdict, "no winner");
  EXPECT_DOUBLE_EQ(*rows[1].reference_seconds, 3) << "the vendor was timed";
  EXPECT_EQ(rows[2].verdict, "no reference");
  const ResultSums s = sums_of(rows);
  EXPECT_EQ(s.without_times, 1u);
  EXPECT_DOUBLE_EQ(s.weighted, 0);
  EXPECT_DOUBLE_EQ(s.average, 0);
}

TEST_F(ResultsTest, AnotherLockIsTheReference) {
  const auto entry = [&](size_t i, char code, double vendor) {
    const Study& s = in.studies[i];
    LockEntry e{s.problem.key(),       s.arch,      s.device, fake_choice(4, 8, 16, 0), 3,
                std::string(64, code), "old tools", {}};
    e.evidence = {{"noise_floor", 0.01},
                  {"vendor", {"library 1.0", vendor}},
                  {"vendor_ratio", {vendor, vendor, vendor}}};
    return e;
  };
  Lock old;
  old.put(entry(0, '2', 0.75)); // this build's takes 0.5 of the vendor's time
  old.put(entry(1, '1', 2));    // the same code
  in.reference = old, in.reference_name = "old.lock.json";
  for (Study& s : in.studies)
    s.evidence = {{"noise_floor", 0.01},
                  {"vendor", {"library 1.0", 0}},
                  {"vendor_ratio",
                   {1 / s.against_vendor->value, 1 / s.against_vendor->value, 1 / s.against_vendor->value}}};
  const std::vector<ResultRow> rows = result_rows(in);
  EXPECT_EQ(rows[0].verdict, "win");
  EXPECT_DOUBLE_EQ(rows[0].uplift->value, 1.5);
  EXPECT_DOUBLE_EQ(*rows[0].reference_seconds, 1.5);
  EXPECT_EQ(rows[0].reference, "old.lock.json: " + fake_choice(4, 8, 16, 0).text());
  EXPECT_EQ(rows[1].verdict, "same");
  EXPECT_FALSE(rows[1].kept);
  EXPECT_EQ(rows[2].verdict, "not in the reference");
  const ResultSums s = sums_of(rows);
  EXPECT_DOUBLE_EQ(s.weighted, (10 * 1.5 + 6) / (10 * 1.0 + 6) - 1);
  EXPECT_EQ(s.without_times, 1u);

  in.reference->put(entry(2, '3', 0.7));
  in.studies[2].evidence["vendor"][0] = "library 2.0";
  EXPECT_EQ(result_rows(in)[2].verdict.substr(0, 14), "not comparable");
}

TEST_F(ResultsTest, WhatWasLockedEarlierCountsByItsEvidence) {
  Study s;
  s.problem = in.studies[0].problem, s.arch = "fake", s.device = fake_device();
  LockEntry e{s.problem.key(),      s.arch,  s.device, fake_choice(4, 8, 16, 0), 3,
              std::string(64, '1'), "tools", {}};
  e.evidence = {{"noise_floor", 0.01}, {"vendor", {"library 1.0", 0.5}}, {"vendor_ratio", {0.49, 0.5, 0.51}}};
  s.locked = {e};
  in.studies = {s};
  const std::vector<ResultRow> rows = result_rows(in);
  EXPECT_EQ(rows[0].verdict, "win");
  EXPECT_DOUBLE_EQ(rows[0].uplift->value, 2);
  EXPECT_TRUE(rows[0].kept);
  EXPECT_FALSE(rows[0].tuned_seconds);
  EXPECT_EQ(sums_of(rows).without_times, 1u);
}

} // namespace
} // namespace deepgen::results_test
