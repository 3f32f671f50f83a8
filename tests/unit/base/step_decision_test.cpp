// The decision on the finals of a made-up device, whose kernels take exactly as long as their waves say.
#include "base/problem/problem.h"
#include "base/ranges/crossover.h"
#include "base/search/finalists.h"
#include "base/search/ranged_decision.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace deepgen::step_decision_test {
namespace {

Gemm rows_problem() {
  Gemm p;
  p.m = 8192, p.n = p.k = 4096, p.least[0] = 1;
  return p;
}

struct Made {
  int64_t rows, columns; ///< of a tile
  double start, wave;    ///< seconds
  bool even = false;     ///< all blocks share the work: they count, not waves

  CallGrid grid() const {
    CallGrid g;
    const int64_t across = (4096 + columns - 1) / columns;
    g.most = {(8192 + rows - 1) / rows * across, 1, 1};
    g.rules[0] = {1, {rows, columns, 0, 0}};
    g.resident = 132;
    return g;
  }
  double seconds(int64_t m) const {
    const Sizes at{m, 4096, 4096, 1};
    return start + wave * (even ? grid().blocks(at) / 132 : grid().waves(at));
  }
};

/// Tiles as of matrix cores: larger ones need less for each element.
std::vector<Made> made(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Made> out;
  for (int64_t rows : {16, 32, 56, 80, 104, 128, 152, 192, 200, 256}) {
    const int64_t columns = random() % 2 ? 64 : 128;
    const double elements = double(rows * columns), odd = 0.9 + 0.2 * double(random() % 1000) / 1000;
    out.push_back(
        {rows, columns, 5e-6, odd * 1.4e-9 * elements * (1 + 60.0 / double(rows)), random() % 5 == 0});
  }
  return out;
}

RecordLog finals_of(const std::vector<Made>& kernels, const Gemm& p) {
  RecordLog log;
  log.noise_floor = 0.004;
  log.environment["tune_at"] = tune_points_json(default_tune_points(p));
  for (size_t k = 0; k < kernels.size(); ++k) {
    Record r;
    r.stage = "final", r.slot = int64_t(k), r.problem = p.key(), r.arch = "sm_90a";
    r.origin = k == 4 ? "default" : "model";
    r.choice = {"tile", Config({{"rows", kernels[k].rows}})};
    r.sha256 = "k" + std::to_string(k), r.code_bytes = 100 * int64_t(k + 1);
    r.grids = {kernels[k].grid()};
    for (const Sizes& at : final_points(default_tune_points(p), true).at) {
      const double seconds = kernels[k].seconds(at.m), ratio = seconds / kernels[4].seconds(at.m);
      r.points.push_back({at, {seconds, seconds, seconds, ratio, ratio, ratio, 9, 1}});
    }
    r.timing = mean_timing(r.points);
    log.records.push_back(r);
  }
  return log;
}

RecordLog without_grids(RecordLog log) {
  for (Record& r : log.records) r.grids.clear();
  return log;
}

size_t taker(const RangedDecision& d, int64_t m) {
  for (const RangedWinner& w : d.parts)
    if (w.taken.holds({m, 4096, 4096, 1})) return std::stoul(w.record.sha256.substr(1));
  ADD_FAILURE() << "nothing takes " << m;
  return 0;
}

/// At the worst M of the range: over the best finalist's time, less 1.
double worst_of(const std::vector<Made>& kernels, const RangedDecision& d) {
  double worst = 0;
  size_t part = 0;
  for (int64_t m = 1; m <= 8192; ++m) {
    while (m > d.parts[part].taken.most.m) ++part;
    double best = 1;
    for (const Made& k : kernels) best = std::min(best, k.seconds(m));
    const size_t chosen = std::stoul(d.parts[part].record.sha256.substr(1));
    worst = std::max(worst, kernels[chosen].seconds(m) / best - 1);
  }
  return worst;
}

void expect_steps_cover(const RangedDecision& d) {
  int64_t next = 1;
  for (const RangedWinner& w : d.parts) {
    EXPECT_EQ(w.taken.least.m, next);
    next = w.taken.most.m + 1;
  }
  EXPECT_EQ(next, 8193);
}

TEST(StepDecision, IsNearTheBestAtEverySizeWhereThePointsAloneAreNot) {
  const Gemm p = rows_problem();
  int missed = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const std::vector<Made> kernels = made(seed);
    const RecordLog log = finals_of(kernels, p);
    const RangedDecision d = decide_ranges(p, log);
    ASSERT_TRUE(d.found);
    expect_steps_cover(d);
    EXPECT_LE(worst_of(kernels, d), 0.05) << "seed " << seed;
    missed += worst_of(kernels, decide_ranges(p, without_grids(log))) > 0.05;
  }
  EXPECT_EQ(missed, 25) << "the points alone would do: this tests nothing";
}

TEST(StepDecision, LosesNothingAtMeasuredSizes) {
  const Gemm p = rows_problem();
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const std::vector<Made> kernels = made(seed);
    const RecordLog log = finals_of(kernels, p);
    const RangedDecision d = decide_ranges(p, log);
    double chosen = 0;
    std::vector<double> single(kernels.size(), 0);
    for (const PointTiming& at : log.records[0].points) {
      double best = 1;
      for (const Made& k : kernels) best = std::min(best, k.seconds(at.at.m));
      const double own = kernels[taker(d, at.at.m)].seconds(at.at.m) / best - 1;
      EXPECT_LE(own, kMostRegret + 0.011) << at.at.m;
      chosen += own;
      for (size_t k = 0; k < kernels.size(); ++k) single[k] += kernels[k].seconds(at.at.m) / best - 1;
    }
    EXPECT_LE(chosen, *std::min_element(single.begin(), single.end()) + 1e-9);
    ASSERT_TRUE(d.bound);
    EXPECT_TRUE(d.bound->kept);
  }
}

std::vector<std::pair<std::string, int64_t>> parts_of(const RangedDecision& d) {
  std::vector<std::pair<std::string, int64_t>> out;
  for (const RangedWinner& w : d.parts) out.push_back({w.record.sha256, w.taken.most.m});
  return out;
}

TEST(StepDecision, IsTheSameForAnyOrderOfRecordsAndAfterALogIsRead) {
  const Gemm p = rows_problem();
  RecordLog log = finals_of(made(3), p);
  const auto parts = parts_of(decide_ranges(p, log));
  const RecordLog read = RecordLog::parse(log.serialize(), "x");
  EXPECT_EQ(read.records[2].grids, log.records[2].grids);
  EXPECT_EQ(parts_of(decide_ranges(p, read)), parts);
  std::mt19937_64 random(7);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(log.records.begin(), log.records.end(), random);
    EXPECT_EQ(parts_of(decide_ranges(p, log)), parts);
  }
}

/// Logs of earlier versions decide what they did: by their points.
TEST(StepDecision, WithoutAllGridsThePointsAloneDecide) {
  const Gemm p = rows_problem();
  RecordLog log = finals_of(made(3), p);
  const auto old = parts_of(decide_ranges(p, without_grids(log)));
  EXPECT_NE(parts_of(decide_ranges(p, log)), old);
  log.records[3].grids.clear();
  EXPECT_EQ(parts_of(decide_ranges(p, log)), old);
  EXPECT_TRUE(doubtful_sizes(p, log, 5).empty());
}

TEST(StepDecision, WhatWasMeasuredBetweenCounts) {
  const Gemm p = rows_problem();
  const std::vector<Made> kernels = made(3);
  RecordLog log = finals_of(kernels, p);
  const RangedDecision d = decide_ranges(p, log);
  ASSERT_GT(d.borders.size(), 3u);
  const auto step = std::find_if(d.borders.begin(), d.borders.end(),
                                 [](const RangedBorder& b) { return b.known && b.high > 300; });
  ASSERT_NE(step, d.borders.end());
  // The kernel that should take it from there on takes three times as long.
  const size_t own = std::stoul(step->after.substr(1));
  Sizes at = step->at;
  at.m = step->high;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const double seconds = (k == own ? 3 : 1) * kernels[k].seconds(at.m),
                 ratio = seconds / kernels[4].seconds(at.m);
    log.records[k].between.push_back({at, {seconds, seconds, seconds, ratio, ratio, ratio, 9, 1}});
  }
  EXPECT_NE(taker(decide_ranges(p, log), at.m), own);
  const RecordLog read = RecordLog::parse(log.serialize(), "x");
  EXPECT_EQ(parts_of(decide_ranges(p, read)), parts_of(decide_ranges(p, log)));
}

TEST(StepDecision, DoubtfulSizesAreFewAndUnmeasured) {
  const Gemm p = rows_problem();
  RecordLog log = finals_of(made(3), p);
  // As real kernels: times that blocks and waves do not tell exactly.
  std::mt19937_64 random(1);
  for (Record& r : log.records)
    for (PointTiming& t : r.points) {
      const double factor = 1 + 0.1 * double(random() % 100) / 100;
      t.timing.seconds *= factor, t.timing.ratio *= factor;
    }
  const std::vector<DoubtfulSize> sizes = doubtful_sizes(p, log, 5);
  ASSERT_FALSE(sizes.empty());
  EXPECT_LE(sizes.size(), 5u);
  for (const DoubtfulSize& s : sizes) {
    EXPECT_FALSE(log.records[0].at(s.at)) << s.at.m;
    EXPECT_GE(s.kernels.size(), 2u);
    EXPECT_EQ(s.kernels[0], decide_ranges(p, log).parts.empty()
                                ? ""
                                : "k" + std::to_string(taker(decide_ranges(p, log), s.at.m)));
  }
}

TEST(StepDecision, HostileRecordsAreRefused) {
  const Record good = finals_of(made(3), rows_problem()).records[0];
  EXPECT_EQ(Record::from_json(good.to_json(), "x").to_json(), good.to_json());
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"grids", 1},
                                                 {"grids", {{{"most", {1, 1, 1}}}}},
                                                 {"between", 1},
                                                 {"between", {{{"at", {1, 2}}}}}}) {
    Json bad = good.to_json();
    bad[key] = value;
    EXPECT_THROW(Record::from_json(bad, "x"), Error) << bad[key];
  }
}

/// The kernel of 80 rows is the best from 257 to 320 alone, where no round has timed anybody.
TEST(StepDecision, FinalistsAreFoundForSizesThatNobodyTimed) {
  const Gemm p = rows_problem();
  std::vector<LoggedRecord> records;
  const std::vector<Made> kernels = {{128, 64, 5e-6, 2e-5}, {200, 64, 5e-6, 2.4e-5}, {256, 128, 5e-6, 3.6e-5},
                                     {16, 64, 5e-6, 8e-6},  {32, 64, 5e-6, 9e-6},    {80, 128, 5e-6, 2.2e-5}};
  for (size_t k = 0; k < 60; ++k) {
    const Made& one = kernels[k < kernels.size() ? k : k % 5];
    const double worse = k < kernels.size() ? 1 : 1 + 0.0001 * double(k); // variants of the others
    Record r;
    r.stage = "r0", r.problem = p.key(), r.arch = "sm_90a", r.sha256 = "k" + std::to_string(k);
    r.origin = k ? "model" : "default", r.grids = {one.grid()};
    for (int64_t m : {1, 4, 16, 23, 32, 45, 64, 98, 151, 197, 256, 393, 603, 786, 1024}) {
      const double seconds = worse * one.seconds(m), ratio = seconds / kernels[0].seconds(m);
      r.points.push_back({{m, 4096, 4096, 1}, {seconds, seconds, seconds, ratio, ratio, ratio, 9, 1}});
    }
    r.timing = mean_timing(r.points);
    records.push_back({r, "r0.jsonl", 0, 0});
  }
  const auto has = [&] {
    const std::vector<LoggedRecord> list = finalists_of(records);
    EXPECT_EQ(list.size(), 15 * 3 / 2 + 1) << "half as many again as the sizes, and the default";
    return std::any_of(list.begin(), list.end(), [](const auto& r) { return r.record.sha256 == "k5"; });
  };
  EXPECT_TRUE(has());
  for (LoggedRecord& r : records) r.record.grids.clear();
  EXPECT_FALSE(has()) << "it is not needed at the points: this tests nothing";
}

} // namespace
} // namespace deepgen::step_decision_test
