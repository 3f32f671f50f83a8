#include "base/search/ranged_decision.h"

#include "base/problem/partition.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace deepgen::ranged_decision_test {
namespace {

Gemm tokens(int64_t least = 1, int64_t most = 4096) {
  Gemm p;
  p.m = most, p.n = 64, p.k = 64, p.least[0] = least;
  return p;
}

using Ratio = std::function<double(const Sizes&)>;

Record finalist(const Gemm& p, const std::string& name, const Ratio& ratio,
                const std::string& origin = "model") {
  Record r;
  r.stage = "final", r.problem = p.key(), r.arch = "cpu", r.origin = origin;
  r.choice = {name, {}}, r.sha256 = name, r.code_bytes = 100;
  for (const Sizes& at : final_points(default_tune_points(p)).at) {
    const double x = ratio(at);
    r.points.push_back({at, {x * 1e-6, x * 1e-6, x * 1e-6, x, x, x, 9, 1}});
  }
  r.timing = mean_timing(r.points);
  return r;
}

/// The default, a kernel for few rows and one for many, of equal speed at 90.
RecordLog crossing(const Gemm& p) {
  RecordLog log;
  log.noise_floor = 0.01;
  log.records = {finalist(
                     p, "default", [](const Sizes&) { return 1.0; }, "default"),
                 finalist(p, "few", [](const Sizes& s) { return 0.5 * std::pow(double(s.m) / 90, 0.2); }),
                 finalist(p, "many", [](const Sizes& s) { return 0.5 * std::pow(90 / double(s.m), 0.2); })};
  return log;
}

/// Every size once, in ascending order.
void expect_cover(const Gemm& p, const RangedDecision& d) {
  int64_t next = *p.least[0];
  for (const RangedWinner& w : d.parts) {
    EXPECT_EQ(w.taken.least.m, next);
    EXPECT_GE(w.taken.most.m, w.taken.least.m);
    EXPECT_EQ(w.taken.least.n, p.n);
    next = w.taken.most.m + 1;
  }
  EXPECT_EQ(next, p.m + 1);
}

TEST(RangedDecision, KernelsShareTheCallsWhereTheyAreFastest) {
  const Gemm p = tokens();
  const RangedDecision d = decide_ranges(p, crossing(p));
  ASSERT_TRUE(d.found);
  EXPECT_TRUE(d.improved);
  ASSERT_EQ(d.parts.size(), 2u);
  EXPECT_EQ(d.parts[0].record.sha256, "few");
  EXPECT_EQ(d.parts[1].record.sha256, "many");
  EXPECT_GT(d.parts[1].taken.least.m, 64);
  EXPECT_LE(d.parts[1].taken.least.m, 128);
  expect_cover(p, d);
}

TEST(RangedDecision, MeasuredBordersCount) {
  const Gemm p = tokens();
  RecordLog log = crossing(p);
  log.environment["borders"] = to_json({{"few", "many", 71}, {"many", "few", 80}, {"few", "many", 3000}});
  const RangedDecision d = decide_ranges(p, log);
  ASSERT_EQ(d.parts.size(), 2u);
  EXPECT_EQ(d.parts[0].taken.most.m, 70);
  EXPECT_EQ(d.parts[1].taken.least.m, 71);
  // Not between the points where the kernels change.
  log.environment["borders"] = to_json({{"few", "many", 3000}});
  EXPECT_LT(decide_ranges(p, log).parts[1].taken.least.m, 129);
}

/// A kernel that is 3 % behind the default at one point is within the bound to the best there. The default is
/// linked for it all the same, as far as KERNELS allow; else somebody is told.
TEST(RangedDecision, TheDefaultTakesThePointsWhereOthersLoseToIt) {
  const Gemm p = tokens();
  RecordLog log = crossing(p);
  log.records.resize(1);
  log.records.push_back(finalist(p, "fast", [](const Sizes& s) { return s.m == 1024 ? 1.03 : 0.5; }));
  RangedDecision d = decide_ranges(p, log);
  ASSERT_EQ(d.parts.size(), 3u);
  EXPECT_EQ(d.parts[1].record.sha256, "default");
  EXPECT_TRUE(d.parts[1].taken.holds({1024, 64, 64, 1}));
  ASSERT_TRUE(d.bound);
  EXPECT_TRUE(d.bound->kept);
  TunePoints points = default_tune_points(p);
  points.kernels = 1;
  log.environment["tune_at"] = tune_points_json(points);
  d = decide_ranges(p, log);
  ASSERT_EQ(d.parts.size(), 1u);
  EXPECT_EQ(d.parts[0].record.sha256, "fast");
  EXPECT_FALSE(d.bound->kept);
  EXPECT_EQ(d.bound->needed, 2u);
  EXPECT_NE(d.reason.find("KERNELS 2 would keep it"), std::string::npos) << d.reason;
  log.stable = false;
  EXPECT_FALSE(decide_ranges(p, log).bound) << "the finals do not decide";
}

TEST(RangedDecision, TheDefaultStaysForNoMoreThanNoise) {
  const Gemm p = tokens();
  RecordLog log = crossing(p);
  log.records = {log.records[0], finalist(p, "lucky", [](const Sizes&) { return 0.995; })};
  const RangedDecision d = decide_ranges(p, log);
  ASSERT_EQ(d.parts.size(), 1u);
  EXPECT_EQ(d.parts[0].record.sha256, "default");
  EXPECT_FALSE(d.improved);
  expect_cover(p, d);
}

TEST(RangedDecision, AnUnstableLogAndAHoldoutThatDisagreesKeepTheDefault) {
  const Gemm p = tokens();
  RecordLog log = crossing(p);
  log.stable = false;
  EXPECT_EQ(decide_ranges(p, log).parts[0].record.sha256, "default");
  log.stable = true;
  log.environment["points"] = to_json({{{1, 64, 64, 1}, "few", 1e-6, 1.2, 1.1, 1.3, 0}});
  EXPECT_EQ(decide_ranges(p, log).parts.size(), 1u);
  EXPECT_EQ(decide_ranges(p, log).parts[0].record.sha256, "default");
  log.environment["points"] = to_json({{{1, 64, 64, 1}, "few", 1e-6, 0.8, 0.7, 0.9, 1.1}});
  EXPECT_EQ(decide_ranges(p, log).parts.size(), 2u);
}

TEST(RangedDecision, FailedFinalistsTakeNothing) {
  const Gemm p = tokens();
  RecordLog log = crossing(p);
  log.records[1].status = "wrong";
  const RangedDecision d = decide_ranges(p, log);
  for (const RangedWinner& w : d.parts) EXPECT_NE(w.record.sha256, "few");
  expect_cover(p, d);
  for (Record& r : log.records) r.status = "crash";
  EXPECT_FALSE(decide_ranges(p, log).found);
}

/// With a range of K, too.
Gemm weights() {
  Gemm p = tokens();
  p.k = 65536, p.least[2] = 1;
  return p;
}

std::vector<SizeSpan> spans_of(const RangedDecision& d) {
  std::vector<SizeSpan> spans;
  for (const RangedWinner& w : d.parts) spans.push_back(w.taken);
  return spans;
}

TEST(RangedDecision, SeveralRangesAreSharedInBoxes) {
  const Gemm p = weights();
  RecordLog log = crossing(p);
  // "few" is for few rows, "many" for many rows; "deep" for many rows and a long K.
  const auto deep = [](const Sizes& s) { return s.m > 90 && s.k > 1000 ? 0.1 : 2.0; };
  log.records.push_back(finalist(p, "deep", deep));
  TunePoints points = tune_points(
      p, {"1x1", "1x65536", "16x300", "1024x16", "1024x4096", "4096x1", "4096x65536"}, {}, 6, "x");
  for (Record& r : log.records) {
    const std::string name = r.choice.template_name;
    r.points.clear();
    for (const Sizes& at : final_points(points).at) {
      const double x = name == "deep"   ? deep(at)
                       : name == "few"  ? 0.5 * std::pow(double(at.m) / 90, 0.2)
                       : name == "many" ? 0.5 * std::pow(90 / double(at.m), 0.2)
                                        : 1;
      r.points.push_back({at, {x * 1e-6, x * 1e-6, x * 1e-6, x, x, x, 9, 1}});
    }
  }
  log.environment["tune_at"] = tune_points_json(points);
  RangedDecision d = decide_ranges(p, log);
  EXPECT_EQ(why_no_partition(all_calls(p), spans_of(d)), "");
  EXPECT_EQ(d.parts.back().record.sha256, "deep");
  const auto taker = [&](const Sizes& at) {
    std::string name;
    for (const RangedWinner& w : d.parts)
      if (w.taken.holds(at)) name = w.record.sha256;
    return name;
  };
  EXPECT_EQ(taker({2, 64, 60000, 1}), "few");
  EXPECT_EQ(taker({4000, 64, 2, 1}), "many");
  EXPECT_EQ(taker({4000, 64, 60000, 1}), "deep");
  // What was measured moves a border, where it is the same one.
  ASSERT_EQ(d.borders.size() + 1, d.parts.size());
  const auto border = std::find_if(d.borders.begin(), d.borders.end(),
                                   [](const RangedBorder& b) { return b.size == Size::k; });
  ASSERT_NE(border, d.borders.end());
  Border measured{border->before, border->after, border->low + 1, border->size, border->at};
  log.environment["borders"] = to_json({measured});
  EXPECT_EQ(to_json(borders_of(log.environment)), to_json({measured}));
  const Sizes beyond{4000, 64, border->low + 1, 1};
  EXPECT_EQ(taker(beyond), "many");
  d = decide_ranges(p, log);
  EXPECT_EQ(taker(beyond), "deep");
  EXPECT_EQ(why_no_partition(all_calls(p), spans_of(d)), "");
  measured.at.m += 1;
  log.environment["borders"] = to_json({measured});
  d = decide_ranges(p, log);
  EXPECT_EQ(taker(beyond), "many") << "another border's";
}

TEST(RangedDecision, BordersOfSeveralRangesAreChecked) {
  const Json good = {{"before", "a"}, {"after", "b"}, {"first", 2}, {"size", "k"}, {"at", {1, 1, 1, 1}}};
  EXPECT_EQ(borders_of({{"borders", {good}}})[0].size, Size::k);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"size", "x"}, {"size", 2}, {"at", {1, 2}}, {"at", "1"}}) {
    Json bad = good;
    bad[key] = value;
    EXPECT_THROW(borders_of({{"borders", {bad}}}), Error) << bad;
  }
}

/// In bursts the kernel for many rows is the fastest everywhere, and by much; it was not timed at all points.
TEST(RangedDecision, BothRegimesDecideAtEachPoint) {
  const Gemm p = tokens();
  RecordLog log = crossing(p);
  log.environment["regime"] = "balanced";
  log.environment["finals"]["bursts"]["noise_floor"] = 0.01;
  EXPECT_EQ(decide_ranges(p, log).parts.size(), 2u) << "where no burst is known";
  const auto in_bursts = [](Record& r, double change) {
    for (PointTiming& at : r.points)
      at.bursts = at.timing, at.bursts->ratio *= change, at.bursts->low *= change, at.bursts->high *= change;
  };
  in_bursts(log.records[0], 1), in_bursts(log.records[1], 1), in_bursts(log.records[2], 0.01);
  RangedDecision d = decide_ranges(p, log);
  ASSERT_EQ(d.parts.size(), 1u);
  EXPECT_EQ(d.parts[0].record.sha256, "many");
  for (PointTiming& at : log.records[2].points)
    if (at.at.m < 100) at.bursts.reset(); // it counts as having changed as the others did
  d = decide_ranges(p, log);
  EXPECT_EQ(d.parts.size(), 2u);
  expect_cover(p, d);
}

TEST(RangedDecision, TheHoldoutConfirmsInTheMeanOfBoth) {
  const Gemm p = tokens();
  RecordLog log = crossing(p);
  log.environment["regime"] = "balanced";
  std::vector<RangedHoldout> holdout = {{{64, 64, 64, 1}, "few", {1e-6, 0.9, 0.9, 0.9, 1.1}}};
  holdout[0].bursts = HeldOut{2e-6, 0.8, 0.8, 0.8, 1.3};
  log.environment["points"] = to_json(holdout);
  EXPECT_EQ(to_json(holdout_of(log.environment)), to_json(holdout));
  EXPECT_TRUE(decide_ranges(p, log).improved);
  EXPECT_NEAR(mean_decision(p, log).timing.ratio, std::sqrt(0.72), 1e-9);
  EXPECT_NEAR(holdout[0].both().vendor, std::sqrt(1.43), 1e-9);
  holdout[0].bursts->ratio = 1.2;
  log.environment["points"] = to_json(holdout);
  EXPECT_FALSE(decide_ranges(p, log).improved) << "1.04 in the mean";
}

TEST(RangedDecision, WhatIsReadIsChecked) {
  EXPECT_THROW(borders_of({{"borders", 7}}), Error);
  EXPECT_THROW(borders_of({{"borders", {{{"before", "a"}, {"after", "b"}, {"first", -1}}}}}), Error);
  EXPECT_THROW(holdout_of({{"points", {{{"at", {1, 2}}}}}}), Error);
  EXPECT_TRUE(borders_of(Json::object()).empty());
}

TEST(RangedDecision, KernelsAndWeightsOfTheSearchCount) {
  const Gemm p = tokens();
  RecordLog log = crossing(p);
  TunePoints points = default_tune_points(p);
  points.kernels = 1;
  log.environment["tune_at"] = tune_points_json(points);
  EXPECT_EQ(decide_ranges(p, log).parts.size(), 1u);
  // A gain at one point in 25 is noise in the mean; not where most calls are.
  log.records = {finalist(
                     p, "default", [](const Sizes&) { return 1.0; }, "default"),
                 finalist(p, "flat", [](const Sizes&) { return 0.5; }),
                 finalist(p, "at 64", [](const Sizes& s) { return s.m == 64 ? 0.48 : 1.0; })};
  points.kernels = 6;
  log.environment["tune_at"] = tune_points_json(points);
  EXPECT_EQ(decide_ranges(p, log).parts.size(), 1u);
  for (size_t i = 0; i < points.at.size(); ++i)
    if (points.at[i].m == 64) points.weights[i] = 1000;
  log.environment["tune_at"] = tune_points_json(points);
  const RangedDecision d = decide_ranges(p, log);
  ASSERT_EQ(d.parts.size(), 3u);
  EXPECT_EQ(d.parts[1].record.sha256, "at 64");
  EXPECT_TRUE(d.parts[1].taken.holds({64, 64, 64, 1}));
  expect_cover(p, d);
}

TEST(Record, PointsRoundTrip) {
  const Gemm p = tokens();
  const Record r = finalist(p, "few", [](const Sizes& s) { return double(s.m); });
  const Record again = Record::from_json(r.to_json(), "x");
  EXPECT_EQ(again.to_json(), r.to_json());
  ASSERT_EQ(again.points.size(), r.points.size());
  ASSERT_TRUE(again.at({4, 64, 64, 1}));
  EXPECT_EQ(again.at({4, 64, 64, 1})->ratio, 4);
  EXPECT_FALSE(again.at({5, 64, 64, 1}));
  Json bad = r.to_json();
  bad["points"][0]["at"] = {1, 2, 3};
  EXPECT_THROW(Record::from_json(bad, "x"), Error);
}

} // namespace
} // namespace deepgen::ranged_decision_test
