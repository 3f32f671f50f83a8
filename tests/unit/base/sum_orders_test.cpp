// Of batch invariant problems: which order of sums wins, and whose bits are wrong.
#include "base/files/files.h"
#include "base/search/finalists.h"
#include "base/search/ranged_decision.h"
#include "base/search/sum_orders.h"
#include "base/search/tune_points_json.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace deepgen::sum_orders_test {
namespace {

Gemm invariant() {
  Gemm p;
  p.m = 4096, p.n = 64, p.k = 64, p.least[0] = 1, p.batch_invariant = true;
  return p;
}

using Ratio = std::function<double(const Sizes&)>;

Record record(const Gemm& p, const std::string& name, const std::string& order, const Ratio& ratio,
              const std::vector<Sizes>& at) {
  Record r;
  r.stage = "final", r.problem = p.key(), r.arch = "cpu", r.origin = "model";
  r.choice = {name, {}}, r.sha256 = name, r.code_bytes = 100, r.sum_order = order;
  for (const Sizes& sizes : at) {
    const double x = ratio(sizes);
    r.points.push_back({sizes, {x * 1e-6, x * 1e-6, x * 1e-6, x, x, x, 9, 1}});
  }
  r.timing = mean_timing(r.points);
  return r;
}

Record finalist(const Gemm& p, const std::string& name, const std::string& order, const Ratio& ratio) {
  return record(p, name, order, ratio, final_points(default_tune_points(p)).at);
}

/// By order "a", one kernel is the best of all for few rows; by "b" two share the sizes, and are the best
/// together.
RecordLog two_orders(const Gemm& p) {
  RecordLog log;
  log.noise_floor = 0.01;
  log.records = {finalist(p, "default", "a", [](const Sizes&) { return 1.0; }),
                 finalist(p, "a few", "a", [](const Sizes& s) { return s.m < 16 ? 0.3 : 1.2; }),
                 finalist(p, "b few", "b", [](const Sizes& s) { return s.m < 64 ? 0.5 : 0.9; }),
                 finalist(p, "b many", "b", [](const Sizes& s) { return s.m < 64 ? 0.9 : 0.5; })};
  log.records[0].origin = "default";
  return log;
}

TEST(SumOrders, KernelsOfOneOrderShareTheCalls) {
  const Gemm p = invariant();
  const RangedDecision d = decide_ranges(p, two_orders(p));
  ASSERT_TRUE(d.found);
  EXPECT_EQ(d.sum_order, "b");
  ASSERT_EQ(d.parts.size(), 2u);
  for (const RangedWinner& w : d.parts) EXPECT_EQ(w.record.sum_order, "b");
  // Of all orders "a few" would take the smallest sizes.
  EXPECT_GT(d.order_cost, 1.02);
  EXPECT_LT(d.order_cost, 1.67);

  Gemm any = p;
  any.batch_invariant = false;
  RecordLog log = two_orders(any);
  for (Record& r : log.records) r.sum_order.clear();
  const RangedDecision free = decide_ranges(any, log);
  EXPECT_EQ(free.sum_order, "");
  EXPECT_EQ(free.parts.front().record.sha256, "a few");
}

TEST(SumOrders, WeightsDecideWhichOrder) {
  const Gemm p = invariant();
  RecordLog log = two_orders(p);
  TunePoints points = default_tune_points(p);
  for (size_t i = 0; i < points.at.size(); ++i) points.weights[i] = points.at[i].m < 16 ? 1000 : 1;
  log.environment["tune_at"] = tune_points_json(points);
  const RangedDecision d = decide_ranges(p, log);
  EXPECT_EQ(d.sum_order, "a");
  for (const RangedWinner& w : d.parts) EXPECT_EQ(w.record.sum_order, "a");
}

/// Whatever the times: one order, every size once, never worse than the best single kernel of any order whose
/// kernels cover the points, and the same when records are shuffled.
TEST(SumOrders, PropertiesOfDecisions) {
  std::mt19937 random(11);
  const Gemm p = invariant();
  for (int round = 0; round < 200; ++round) {
    RecordLog log;
    log.noise_floor = 0.01;
    for (int i = 0; i < 8; ++i) {
      const double base = 0.4 + double(random() % 100) / 100, slope = double(random() % 100) / 300 - 0.15;
      log.records.push_back(finalist(p, "k" + std::to_string(i), std::string(1, char('a' + random() % 3)),
                                     [=](const Sizes& s) { return base * std::pow(double(s.m), slope); }));
    }
    const RangedDecision d = decide_ranges(p, log);
    ASSERT_TRUE(d.found);
    int64_t next = 1;
    for (const RangedWinner& w : d.parts) {
      EXPECT_EQ(w.record.sum_order, d.sum_order);
      EXPECT_EQ(w.taken.least.m, next);
      next = w.taken.most.m + 1;
    }
    EXPECT_EQ(next, p.m + 1);
    EXPECT_GE(d.order_cost, 1 - 0.06); // fewer kernels may be chosen than the best have
    std::shuffle(log.records.begin(), log.records.end(), random);
    const RangedDecision again = decide_ranges(p, log);
    EXPECT_EQ(again.sum_order, d.sum_order);
    ASSERT_EQ(again.parts.size(), d.parts.size());
    for (size_t i = 0; i < d.parts.size(); ++i)
      EXPECT_EQ(again.parts[i].record.sha256, d.parts[i].record.sha256);
  }
}

TEST(SumOrders, AnOrderThatLacksAPointIsNone) {
  const Gemm p = invariant();
  const std::vector<Sizes> at = default_tune_points(p).at;
  Record half = record(p, "fast", "a", [](const Sizes&) { return 0.1; }, at);
  half.points.pop_back();
  const Record whole = record(p, "slow", "b", [](const Sizes&) { return 0.9; }, at);
  const std::vector<double> weights(at.size(), 1);
  EXPECT_EQ(orders_by_time({&half, &whole}, at, weights), std::vector<std::string>{"b"});
}

/// Verdicts on bits are of orders: most of one are right.
TEST(SumOrders, WhoLiesAboutItsOrderIsRejected) {
  const Gemm p = invariant();
  std::vector<Record> records;
  for (const char* name : {"liar", "one", "two", "other", "none"})
    records.push_back(
        finalist(p, name, std::string(name) == "other" ? "b" : "a", [](const Sizes&) { return 1.0; }));
  records[0].row_bits = "77", records[1].row_bits = records[2].row_bits = "66", records[3].row_bits = "55";
  std::vector<Record*> list;
  for (Record& r : records) list.push_back(&r);
  reject_other_bits(list);
  EXPECT_EQ(records[0].status, "varies");
  EXPECT_NE(records[0].detail.find("others than those of one , which adds up in the same order: a"),
            std::string::npos)
      << records[0].detail;
  for (size_t i = 1; i < records.size(); ++i) EXPECT_TRUE(records[i].ok()) << records[i].choice.text();
}

TEST(SumOrders, OfTwoThatDifferTheFirstIsRight) {
  const Gemm p = invariant();
  Record one = finalist(p, "one", "a", [](const Sizes&) { return 1.0; }), two = one;
  two.choice.template_name = "two";
  one.row_bits = "1", two.row_bits = "2";
  reject_other_bits({&one, &two});
  EXPECT_TRUE(one.ok());
  EXPECT_EQ(two.status, "varies");
}

TEST(SumOrders, FinalistsAreOfTheFastestOrderButForAFew) {
  const Gemm p = invariant();
  const std::vector<Sizes> at = default_tune_points(p).at;
  RecordLog log;
  log.environment["tune_at"] = tune_points_json(default_tune_points(p));
  for (int i = 0; i < 20; ++i) {
    const double x = 1 + double(i) / 100;
    Record a = record(
               p, "a" + std::to_string(i), "a", [&](const Sizes&) { return x; }, at),
           b = record(
               p, "b" + std::to_string(i), "b", [&](const Sizes& s) { return s.m == 1 ? x / 2 : 2 * x; }, at);
    for (Record* r : {&a, &b}) r->stage = "r0", log.records.push_back(*r);
  }
  const std::string path = (std::filesystem::temp_directory_path() / "deepgen_sum_orders.jsonl").string();
  write_atomically(path, log.serialize());
  size_t of_a = 0, of_b = 0;
  for (const LoggedRecord& r : finalists_of(read_records({path})))
    (r.record.sum_order == "a" ? of_a : of_b)++;
  std::filesystem::remove(path);
  EXPECT_GE(of_a, kRangedFinalistsOfCpu - 3);
  EXPECT_GE(of_b, 1u);
  EXPECT_LE(of_b, 3u);
}

TEST(SumOrders, RecordsKeepOrderAndBits) {
  const Gemm p = invariant();
  Record r = finalist(p, "one", "wgmma in the order of K, splits=4", [](const Sizes&) { return 1.0; });
  r.row_bits = "0123456789abcdef";
  const Record again = Record::from_json(r.to_json(), "here");
  EXPECT_EQ(again.sum_order, r.sum_order);
  EXPECT_EQ(again.row_bits, r.row_bits);
  r.sum_order.clear(), r.row_bits.clear();
  EXPECT_FALSE(r.to_json().contains("sum_order"));
  EXPECT_FALSE(r.to_json().contains("row_bits"));
}

} // namespace
} // namespace deepgen::sum_orders_test
