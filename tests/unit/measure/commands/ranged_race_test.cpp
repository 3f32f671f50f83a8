// Rounds and finals of a problem with ranges: who is timed at which size, and where borders are found.
#include "base/kernel/call_grid.h"
#include "base/kernel/kernel_call.h"
#include "base/search/ranged_decision.h"
#include "measure/commands/ranged_borders.h"
#include "measure/commands/ranged_final.h"
#include "measure/commands/ranged_round.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

namespace deepgen::ranged_race_test {
namespace {

using Work = std::function<int(const std::string& kernel, const Sizes&)>;

/// Kernels spin as often as it is told of their names.
class SpinningField : public SizedField {
public:
  SpinningField(Sizes at, Work work) : at_(at), work_(std::move(work)) {}
  Arm kernel_arm(const std::string& name, const Kernel& k) override {
    const int spins = work_(k.sha256, at_);
    return {name, [spins]() -> std::function<void()> {
              return [spins] {
                for (int i = 0; i < spins; ++i) asm volatile("" ::: "memory");
              };
            }};
  }
  std::vector<Arm> vendor_arms() override { return {}; }
  std::string vendor_name() const override { return ""; }
  std::vector<std::string> vendor_notes() const override {
    return {"no vendor here", "left out at " + std::to_string(at_.m)};
  }
  std::optional<Arm> read_arm() override { return std::nullopt; }
  void complete(RaceOptions& options, Heat) override { options.sample_seconds = 0.0002; }

private:
  Sizes at_;
  Work work_;
};

Gemm rows_to(int64_t most) {
  Gemm p;
  p.m = most, p.n = 64, p.k = 64, p.least[0] = 1;
  return p;
}

Sizes of_rows(int64_t m) { return {m, 64, 64, 1}; }

Candidate candidate(int64_t slot, const std::string& name, const std::vector<Sizes>& at) {
  Candidate c;
  Kernel k;
  k.role = "main", k.sha256 = name, k.problem = rows_to(4096);
  c.file.kernels = {k};
  c.record.slot = slot, c.record.status = "", c.record.sha256 = name, c.record.stage = "r0";
  c.at = at;
  return c;
}

std::vector<int64_t> timed_at(const Candidate& c) {
  std::vector<int64_t> rows;
  for (const PointTiming& p : c.record.points) rows.push_back(p.at.m);
  return rows;
}

TEST(RangedRound, TimesACandidateWhereItIsWanted) {
  using List = std::vector<int64_t>;
  std::vector<Candidate> all = {candidate(0, "anchor", {}), candidate(1, "everywhere", {}),
                                candidate(2, "few", {of_rows(1), of_rows(23)}),
                                candidate(3, "many", {of_rows(64)})};
  std::vector<Candidate*> list;
  for (Candidate& c : all) list.push_back(&c);
  const std::vector<Sizes> sizes = sizes_of_round({of_rows(1), of_rows(64)}, list);
  ASSERT_EQ(sizes, (std::vector<Sizes>{of_rows(1), of_rows(23), of_rows(64)}));
  Progress progress("test");
  const auto field = [](const Sizes& at) {
    return std::make_unique<SpinningField>(at, [](const std::string&, const Sizes&) { return 20000; });
  };
  time_at_points(sizes, list, field, RaceOptions(), 0.1, progress);
  EXPECT_EQ(timed_at(all[0]), (List{1, 23, 64}));
  EXPECT_EQ(timed_at(all[1]), (List{1, 23, 64}));
  EXPECT_EQ(timed_at(all[2]), (List{1, 23}));
  EXPECT_EQ(timed_at(all[3]), (List{64}));
  for (const Candidate& c : all) EXPECT_EQ(c.record.status, "ok") << c.record.detail;
}

/// Of tiles of so many rows, a block each.
Kernel tiled(const std::string& name, int64_t rows) {
  Kernel k;
  k.role = "main", k.sha256 = name, k.problem = rows_to(4096);
  Launch l;
  l.grid = {(4096 + rows - 1) / rows, 1, 1};
  l.grid_rules[0].factor = 1, l.grid_rules[0].steps[0] = rows;
  k.launches = {l};
  return k;
}

TEST(RangedFinal, StepsAreWhereBlocksAreAdded) {
  const auto steps = [](const Kernel& k, int64_t low, int64_t high) {
    return steps_between(k, of_rows(high), Size::m, low, high);
  };
  EXPECT_EQ(steps(tiled("a", 128), 1024, 1400), (std::vector<int64_t>{1025, 1153, 1281}));
  EXPECT_EQ(steps(tiled("a", 128), 1025, 1153), (std::vector<int64_t>{1153}));
  EXPECT_TRUE(steps(tiled("a", 128), 1025, 1152).empty());
  EXPECT_TRUE(steps(tiled("a", 1), 1, 4096).empty()) << "almost everywhere";
  Kernel persistent = tiled("a", 128);
  persistent.launches[0].grid = {1, 1, 1};
  EXPECT_TRUE(steps(persistent, 1, 4096).empty()) << "as many blocks for all calls";
  EXPECT_TRUE(steps(Kernel(), 1, 4096).empty());
}

/// The first one takes twice as long from 1025 rows on, where it has a tile more; between the sizes at which
/// finalists are timed nothing else says so.
TEST(RangedFinal, BordersAreFoundAtTheStep) {
  const Work work = [](const std::string& name, const Sizes& at) {
    return name == "second" ? 30000 : at.m <= 1024 ? 15000 : 60000;
  };
  RangedContest c;
  c.problem = rows_to(4096);
  c.points = tune_points(c.problem, {"512", "1000", "4096"}, {}, 4, "test");
  const Kernel first = tiled("first", 128), second = tiled("second", 4096);
  for (const Kernel* k : {&first, &second}) {
    Record r;
    r.stage = "final", r.slot = int64_t(c.finalists.size()), r.problem = Problem(c.problem).key(),
    r.arch = "sm_90a";
    r.choice = {"template", Config({{"n", r.slot}})};
    r.sha256 = k->sha256, r.origin = "model";
    c.finalists.push_back(r), c.kernels.push_back(k);
  }
  c.has_default = false;
  c.field = [&](const Sizes& at, bool) { return std::make_unique<SpinningField>(at, work); };
  c.seconds = 3, c.options.most_rounds = 9;
  Progress progress("test");
  std::vector<ArmResult> samples;
  ::testing::internal::CaptureStderr();
  const RecordLog log = run_ranged_contest(c, progress, samples);
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::vector<Border> borders = borders_of(log.environment);
  ASSERT_EQ(borders.size(), 1u) << log.serialize();
  EXPECT_EQ(borders[0].before, "first");
  EXPECT_EQ(borders[0].after, "second");
  EXPECT_EQ(borders[0].first, 1025);
  EXPECT_EQ(said,
            "test: m=512: no vendor here\ntest: m=512: left out at 512\ntest: m=1000: left out at 1000\n"
            "test: m=4096: left out at 4096\n");
}

RangedBorder between(int64_t low, int64_t high) {
  RangedBorder b;
  b.low = low, b.high = high;
  return b;
}

/// Where the second kernel is faster from `truth` on: the sizes that are compared, and what is found, last.
std::vector<int64_t> searched(BorderSearch search, int64_t truth) {
  std::vector<int64_t> out;
  while (const auto at = search.next()) {
    out.push_back(*at);
    search.tell(*at >= truth ? 1 : -std::numeric_limits<double>::infinity());
  }
  out.push_back(search.found());
  return out;
}

TEST(RangedBorders, AreHalvedOrSearchedAmongSteps) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(searched({between(1, 4096), {}, 0.01}, 300), (List{64, 512, 181, 304, 304}));
  EXPECT_EQ(searched({between(1, 4096), {}, 0.01}, 5000), (List{64, 512, 1448, 2435, 4096}));
  EXPECT_EQ(searched({between(400, 500), {}, 0.01}, 0), (List{447, 447})) << "to an eighth";
  EXPECT_EQ(searched({between(440, 500), {}, 0.01}, 0), (List{500}));
  EXPECT_EQ(searched({between(1, 2), {}, 0.01}, 0), (List{2})) << "nothing is between";
  const List steps = {1025, 1153, 1281, 1409, 1537};
  EXPECT_EQ(searched({between(1000, 1600), steps, 0.01}, 1100), (List{1281, 1153, 1025, 1153}));
  EXPECT_EQ(searched({between(1000, 1600), steps, 0.01}, 0), (List{1281, 1153, 1025, 1025}));
  EXPECT_EQ(searched({between(1000, 1600), steps, 0.01}, 9999), (List{1281, 1537, 1600}))
      << "at none of them";
  List many;
  for (int64_t i = 1; i <= 100; ++i) many.push_back(10 * i);
  EXPECT_EQ(searched({between(1, 1000), many, 0.01}, 0), (List{510, 260, 130, 70, 70})) << "four times";
}

TEST(RangedBorders, EndWhereOneIsAsGoodAsTheOther) {
  BorderSearch halved(between(1, 4096), {}, 0.01), steps(between(1, 4096), {100, 200, 300}, 0.01);
  halved.tell(0.009), steps.tell(0.009);
  EXPECT_FALSE(halved.next());
  EXPECT_EQ(halved.found(), 64);
  EXPECT_EQ(steps.next(), 100) << "between steps nothing changes, but at one";
}

/// Each of three is six times as fast as the others in its part. The next sizes at both borders do not depend
/// on each other.
TEST(RangedFinal, EveryBorderIsMeasured) {
  const auto part_of = [](int64_t m) { return m <= 100 ? 0 : m <= 1000 ? 1 : 2; };
  const std::vector<std::string> names = {"first", "second", "third"};
  const Work work = [=](const std::string& name, const Sizes& at) {
    return name == names[size_t(part_of(at.m))] ? 10000 : 60000;
  };
  RangedContest c;
  c.problem = rows_to(4096);
  c.points = tune_points(c.problem, {"1", "16", "64", "256", "512", "2048", "4096"}, {}, 4, "test");
  std::vector<Kernel> kernels(3);
  for (size_t i = 0; i < names.size(); ++i) {
    kernels[i].role = "main", kernels[i].sha256 = names[i], kernels[i].problem = rows_to(4096);
    Record r;
    r.stage = "final", r.slot = int64_t(i), r.problem = Problem(c.problem).key(), r.arch = "cpu";
    r.choice = {"template", Config({{"n", r.slot}})};
    r.sha256 = names[i], r.origin = "model";
    c.finalists.push_back(r), c.kernels.push_back(&kernels[i]);
  }
  c.has_default = false;
  c.field = [&](const Sizes& at, bool) { return std::make_unique<SpinningField>(at, work); };
  c.seconds = 4, c.options.most_rounds = 7;
  Progress progress("test");
  std::vector<ArmResult> samples;
  const RecordLog log = run_ranged_contest(c, progress, samples);
  const std::vector<Border> borders = borders_of(log.environment);
  ASSERT_EQ(borders.size(), 2u) << log.serialize();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(borders[i].before, names[i]);
    EXPECT_EQ(borders[i].after, names[i + 1]);
    const int64_t truth = i ? 1001 : 101;
    EXPECT_GE(borders[i].first, truth);
    EXPECT_LE(borders[i].first, truth * 8 / 7 + 1) << "to an eighth";
  }
}

/// The times of both follow nothing, so that no prediction can be right: a few sizes are measured after all,
/// beside the anchor, and what is written can be decided again.
TEST(RangedFinal, DoubtfulSizesAreMeasured) {
  const Work work = [](const std::string& name, const Sizes& at) {
    return 10000 + (name == "first" ? 17 : 31) * int(at.m * 7919 % 1009);
  };
  RangedContest c;
  c.problem = rows_to(4096), c.arch = "sm_90a";
  c.points = default_tune_points(c.problem);
  const Kernel first = tiled("first", 128), second = tiled("second", 200);
  for (const Kernel* k : {&first, &second}) {
    Record r;
    r.stage = "final", r.slot = int64_t(c.finalists.size()), r.problem = Problem(c.problem).key(),
    r.arch = "sm_90a";
    r.choice = {"template", Config({{"n", r.slot}})};
    r.sha256 = k->sha256, r.origin = r.slot ? "model" : "default";
    r.grids = grids_of(*k, generic_gpu("sm_90a"));
    c.finalists.push_back(r), c.kernels.push_back(k);
  }
  c.field = [&](const Sizes& at, bool) { return std::make_unique<SpinningField>(at, work); };
  c.seconds = 3, c.options.most_rounds = 9;
  Progress progress("test");
  std::vector<ArmResult> samples;
  RecordLog log = run_ranged_contest(c, progress, samples);
  ASSERT_EQ(log.records.size(), 2u);
  const std::vector<PointTiming>& between = log.records[0].between;
  ASSERT_FALSE(between.empty()) << log.serialize();
  EXPECT_LE(between.size(), 10u);
  EXPECT_EQ(log.records[1].between.size(), between.size()) << "two kernels: both may be the best";
  for (const PointTiming& t : between) {
    EXPECT_FALSE(log.records[0].at(t.at)) << t.at.m;
    EXPECT_EQ(std::count_if(between.begin(), between.end(), [&](const auto& o) { return o.at == t.at; }), 1);
    EXPECT_TRUE(!steps_between(first, t.at, Size::m, t.at.m - 1, t.at.m).empty() ||
                !steps_between(second, t.at, Size::m, t.at.m - 1, t.at.m).empty())
        << t.at.m << " is no step";
  }
  const RecordLog read = RecordLog::parse(log.serialize(), "x");
  EXPECT_EQ(decide_ranges(c.problem, read).parts.size(), decide_ranges(c.problem, log).parts.size());
  EXPECT_EQ(read.serialize(), log.serialize());
}

} // namespace
} // namespace deepgen::ranged_race_test
