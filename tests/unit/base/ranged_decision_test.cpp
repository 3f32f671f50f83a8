#include "base/search/ranged_decision.h"

#include "base/problem/points.h"
#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace deepgen {
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
  for (const Sizes& at : final_points(p)) {
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

TEST(RangedDecision, WithSeveralRangesTheFirstOneIsShared) {
  Gemm p = tokens();
  p.k = 512, p.least[2] = 1;
  const RangedDecision d = decide_ranges(p, crossing(p));
  ASSERT_TRUE(d.found);
  expect_cover(p, d);
  for (const RangedWinner& w : d.parts)
    EXPECT_EQ(std::pair(w.taken.least.k, w.taken.most.k), std::pair(int64_t(1), int64_t(512)));
}

TEST(RangedDecision, WhatIsReadIsChecked) {
  EXPECT_THROW(borders_of({{"borders", 7}}), Error);
  EXPECT_THROW(borders_of({{"borders", {{{"before", "a"}, {"after", "b"}, {"first", -1}}}}}), Error);
  EXPECT_THROW(holdout_of({{"points", {{{"at", {1, 2}}}}}}), Error);
  EXPECT_TRUE(borders_of(Json::object()).empty());
}

TEST(Points, FinalsHaveTheMiddles) {
  const Gemm p = tokens();
  const std::vector<Sizes> points = default_points(p), all = final_points(p);
  EXPECT_GT(all.size(), 3 * points.size());
  const auto has = [&](int64_t m) {
    return std::any_of(all.begin(), all.end(), [&](const Sizes& s) { return s.m == m; });
  };
  EXPECT_TRUE(has(256) && has(282) && has(512) && has(563) && has(1024));
  for (size_t i = 1; i < all.size(); ++i) EXPECT_GT(all[i].m, all[i - 1].m);
  EXPECT_EQ(all.front().m, 1);
  EXPECT_EQ(all.back().m, 4096);
  EXPECT_EQ(default_points(tokens(1, 2)).size(), 2u);
  EXPECT_EQ(final_points(tokens(1, 2)).size(), 2u) << "no middle between 1 and 2";
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
} // namespace deepgen
