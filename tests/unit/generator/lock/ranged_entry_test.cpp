// Lock entries of problems with ranges: what they hold, what makes them stale, and the report's curve of
// them.
#include "generator/lock/ranged_entry.h"

#include "base/search/ranged_decision.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"
#include "generator/lock/select.h"
#include "generator/report/report_curve.h"
#include "generator/space/space.h"

#include <gtest/gtest.h>

namespace deepgen::ranged_entry_test {
namespace {

constexpr const char* kKey =
    "gemm m=1..4096 n=512 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4";

class RangedEntryTest : public testing::Test {
protected:
  Gemm p = Gemm::parse(kKey);
  Device device;
  RecordLog final;

  void SetUp() override {
    device.isa = 3;
    const TunePoints points = tune_points(p, {"1", "64", "1024"}, {10, 1, 1}, 4, "x");
    final.environment["tune_at"] = tune_points_json(points);
    final.environment["vendor_name"] = "library 1.0";
    final.noise_floor = 0.01;
    add(p.at(p.sizes()), "default", 'a', 1, 1);
    add(p.at({1, 512, 512, 1}), "model", 'b', 0.5, 2);
    std::vector<RangedHoldout> holdout;
    for (const Sizes& at : points.at)
      holdout.push_back(
          {at, std::string(64, at.m < 100 ? 'b' : 'a'), {2e-6 * double(at.m), 0.8, 0.79, 0.81, 1.25}});
    final.environment["points"] = to_json(holdout);
  }

  /// The estimate's best there, `few` and `many` times as slow as the default up to 64 rows and beyond.
  void add(const Gemm& at, const std::string& origin, char code, double few, double many) {
    Record r;
    r.stage = "final", r.problem = p.key(), r.arch = "cpu", r.origin = origin;
    r.choice = Space(at, "cpu", device).default_choice();
    r.revision = find_template(r.choice.template_name).revision();
    r.sha256 = std::string(64, code), r.code_bytes = 100;
    for (const Sizes& x : final_points(points_of(p, final)).at) {
      const double ratio = x.m <= 64 ? few : many;
      r.points.push_back({x, {ratio * 1e-6, ratio * 1e-6, ratio * 1e-6, ratio, ratio, ratio, 9, 1}});
    }
    r.timing = mean_timing(r.points);
    final.records.push_back(r);
  }

  LockEntry entry() const { return ranged_entry(p, "cpu", device, "tools", final, {final}); }
  SelectRequest request(size_t kernels, const std::vector<std::string>& at = {},
                        const std::vector<double>& weights = {}) const {
    SelectRequest r;
    r.file.target = "kernels", r.file.name = "f", r.file.ns = "kernels", r.file.problem = p;
    r.file.points = tune_points(p, at, weights, kernels, "x"), r.file.own_points = !at.empty();
    r.device = device;
    return r;
  }
  static Lock lock_of(const LockEntry& e) {
    Lock lock;
    lock.put(e);
    return lock;
  }
};

TEST_F(RangedEntryTest, HoldsWhatTheSearchWasFor) {
  const LockEntry e = entry();
  EXPECT_EQ(why_stale(e), "");
  ASSERT_EQ(e.ranges.size(), 1u);
  EXPECT_EQ(e.ranges[0].sha256, std::string(64, 'b'));
  const Json& first = e.evidence["points"][0];
  EXPECT_EQ(first["weight"], 10.0);
  EXPECT_EQ(first["microseconds"], 2.0);
  EXPECT_EQ(first["vendor_ratio"], 1.25);
  EXPECT_FALSE(e.evidence["points"][1].contains("weight"));
  const std::string text = ranges_text(e);
  EXPECT_NE(text.find("m=1: 1.250x vs default, 1.250x vs library 1.0, weight 10\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("m=64: 1.250x vs default, 1.250x vs library 1.0\n"), std::string::npos) << text;
  EXPECT_EQ(Lock::parse(lock_of(e).serialize(), "x").entries()[0].line(), e.line());
}

TEST_F(RangedEntryTest, WithMoreKernelsThanAskedForIsStale) {
  const Lock lock = lock_of(entry());
  EXPECT_EQ(why_too_many(lock.entries()[0], 2), "");
  EXPECT_EQ(why_too_many(lock.entries()[0], 1), "it links 2 kernels, and KERNELS is 1");
  EXPECT_EQ(select(Mode::frozen, lock, "", {request(2)})[0].choice.origin, "lock");
  EXPECT_THROW(select(Mode::frozen, lock, "", {request(1)}), Error);
  const Selected s = select(Mode::lock, lock, "", {request(1)})[0];
  EXPECT_EQ(s.choice.origin, "default");
  EXPECT_TRUE(s.choice.ranges.empty()) << "KERNELS holds for the estimate's choice, too";
  EXPECT_NE(s.note.find("it links 2 kernels, and KERNELS is 1"), std::string::npos) << s.note;
}

/// As where one kernel is the fastest below a size, and again above another.
TEST_F(RangedEntryTest, AKernelOfSeveralPartsCountsOnce) {
  final.records.back().points.back().timing.ratio = 0.5;
  const LockEntry e = entry();
  ASSERT_EQ(e.ranges.size(), 2u);
  EXPECT_EQ(e.sha256, e.ranges[0].sha256);
  EXPECT_EQ(why_stale(e), "");
  EXPECT_EQ(why_too_many(e, 2), "");
  EXPECT_EQ(why_too_many(e, 1), "it links 2 kernels, and KERNELS is 1");
  EXPECT_EQ(e.evidence["points"][1]["kernel"], 0) << "the part that takes 64, not the last one";
}

/// Boxes of two sizes are read as they were written, and are checked.
TEST_F(RangedEntryTest, SeveralRangesAreSharedInBoxes) {
  LockEntry e = entry();
  const Problem two = Problem::parse(
      "gemm m=1..4096 n=512 k=1..512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4");
  e.problem = two.key();
  const auto part = [&](const Sizes& least, const Sizes& most) {
    return LockedPart{e.choice, e.revision, e.sha256, {least, most}};
  };
  e.ranges = {part({1, 512, 1, 1}, {63, 512, 512, 1}), part({64, 512, 1, 1}, {4096, 512, 100, 1})};
  e.taken = SizeSpan{{64, 512, 101, 1}, {4096, 512, 512, 1}};
  EXPECT_EQ(why_stale(e), "");
  const LockEntry again = Lock::parse(lock_of(e).serialize(), "x").entries()[0];
  EXPECT_EQ(again.line(), e.line());
  EXPECT_EQ(again.ranges, e.ranges);
  EXPECT_NE(ranges_text(e).find("m 64..4096, k 1..100: "), std::string::npos) << ranges_text(e);
  EXPECT_NE(ranges_text(e).find("m=64 k=512: "), std::string::npos) << ranges_text(e);
  LockEntry hole = e;
  hole.ranges[1].taken.most.k = 99;
  EXPECT_NE(why_stale(hole).find("leave sizes out"), std::string::npos) << why_stale(hole);
  hole.ranges[1].taken.most.k = 101;
  EXPECT_NE(why_stale(hole).find("sizes twice"), std::string::npos) << why_stale(hole);
  std::swap(hole.ranges[0].taken, *hole.taken);
  EXPECT_NE(why_stale(hole), "");
}

/// All kernels of hopper_ws ask for their tensor maps ahead: those of before are stale, with tiles that end
/// anywhere in A and without. Blocks of clusters end otherwise since.
TEST_F(RangedEntryTest, KernelsOfBeforeAreStale) {
  const auto stale = [](const std::string& problem, const std::string& cluster, int64_t revision) {
    LockEntry e;
    e.problem = "gemm " + problem + " align=2", e.arch = "sm_90a";
    e.choice = {"hopper_ws",
                Config::parse("bm=64 bn=64 slices=1 stages=4 consumers=1 pingpong=0 swap=0 promote=0 " +
                              cluster +
                              " splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=16")};
    e.revision = revision, e.sha256 = std::string(64, 'a'), e.device = generic_gpu("sm_90a");
    return why_stale(e);
  };
  const std::string rest = " n=512 k=512 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none";
  for (const std::string m : {"1..4096", "4096", "3990"})
    for (const auto& [cluster, now] : {std::pair{"cluster_m=1 cluster_n=1 cluster_k=1", int64_t(6)},
                                       {"cluster_m=2 cluster_n=1 cluster_k=1", 7},
                                       {"cluster_m=1 cluster_n=2 cluster_k=1", 7}}) {
      for (const int64_t revision : {int64_t(2), now - 1})
        EXPECT_EQ(stale("m=" + m + rest, cluster, revision),
                  "template hopper_ws has revision " + std::to_string(now) + ", the entry was tuned with " +
                      std::to_string(revision));
      EXPECT_EQ(stale("m=" + m + rest, cluster, now), "");
    }
  // Many sums, of which values of columns took the registers.
  const Problem biased =
      Problem::parse("gemm m=4096 n=512 k=512 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt "
                     "epilogue=bias align=2");
  for (const auto& [bn, now] : {std::pair{"160", int64_t(6)}, {"176", 8}})
    EXPECT_EQ(find_template("hopper_ws")
                  .revision_for(biased, Config::parse(std::string("bm=128 bn=") + bn +
                                                      " consumers=2 pingpong=1 swap=0")),
              now);
  EXPECT_EQ(find_template("hopper_ws")
                .revision_for(Problem::parse("gemm m=1..4096" + rest + " align=2"),
                              Config::parse("bm=0 bn=-64 swap=7 cluster_m=0")),
            6)
      << "of a damaged lock";
}

TEST_F(RangedEntryTest, WarnsOfTooFewKernels) {
  EXPECT_EQ(entry().evidence["bound"], (Json{{"share", 0.05}, {"kept", true}}));
  EXPECT_EQ(bound_warning(entry()), "");
  final.environment["tune_at"]["kernels"] = 1;
  LockEntry e = entry();
  EXPECT_EQ(e.evidence["bound"], (Json{{"share", 0.05}, {"kept", false}, {"kernels", 2}}));
  EXPECT_NE(bound_warning(e).find("KERNELS 2 would keep it"), std::string::npos) << bound_warning(e);
  EXPECT_NE(ranges_text(e).find("    warning: "), std::string::npos) << ranges_text(e);
  EXPECT_EQ(Lock::parse(lock_of(e).serialize(), "x").entries()[0].line(), e.line());
  for (const Json& damaged : {Json(7), Json{{"kept", "no"}}, Json::array()}) {
    e.evidence["bound"] = damaged;
    EXPECT_EQ(bound_warning(e), "");
  }
  e.evidence["bound"] = {{"kept", false}, {"kernels", -3}}, e.evidence["regret"] = "much";
  EXPECT_NE(bound_warning(e), "");
}

TEST_F(RangedEntryTest, ForOtherPointsIsGoodAndMentioned) {
  const Lock lock = lock_of(entry());
  const auto note = [&](const SelectRequest& r) { return select(Mode::lock, lock, "", {r})[0].note; };
  EXPECT_EQ(note(request(6)), "") << "the user names none";
  EXPECT_EQ(note(request(6, {"1", "64", "1024"}, {10, 1, 1})), "");
  for (const SelectRequest& r :
       {request(6, {"1", "64", "1024"}), request(6, {"1", "64"}, {10, 1}), request(6, {"7"})}) {
    EXPECT_NE(note(r).find("was tuned at 1 (weight 10) 64 1024, and TUNE_AT or WEIGHTS say otherwise"),
              std::string::npos)
        << note(r);
    EXPECT_EQ(select(Mode::frozen, lock, "", {r})[0].choice.origin, "lock");
  }
  LockEntry damaged = entry();
  damaged.evidence = {{"points", "what"}};
  EXPECT_EQ(tuned_for_others(damaged, p, request(6, {"7"}).file.points), "");
}

TEST_F(RangedEntryTest, CurveIsOfTheLockElseOfTheHoldout) {
  Study study;
  study.problem = p;
  EXPECT_TRUE(curve_json(study).is_null());
  study.final = final;
  const Json of_holdout = curve_json(study);
  ASSERT_EQ(of_holdout["points"].size(), 3u);
  EXPECT_EQ(of_holdout["size"], "m");
  EXPECT_EQ(of_holdout["vendor"], "library 1.0");
  const Json& point = of_holdout["points"][2];
  EXPECT_EQ(point["at"], 1024);
  EXPECT_EQ(point["flops"].get<double>(), 2.0 * 1024 * 512 * 512);
  EXPECT_DOUBLE_EQ(point["seconds"].get<double>(), 2048e-6);
  EXPECT_DOUBLE_EQ(point["default"].get<double>(), 2048e-6 / 0.8);
  EXPECT_DOUBLE_EQ(point["vendor"].get<double>(), 2048e-6 * 1.25);
  EXPECT_EQ(of_holdout["points"][0]["weight"], 10.0);
  ASSERT_EQ(of_holdout["borders"].size(), 1u);
  EXPECT_GT(of_holdout["borders"][0], 64);
  study.locked = {entry()};
  study.final.reset();
  EXPECT_EQ(curve_json(study).dump(), of_holdout.dump());
  study.locked[0].evidence["points"] = {7, {{"at", {1}}}, {{"at", {9999, 512, 512, 1}}, {"microseconds", 1}}};
  EXPECT_TRUE(curve_json(study).is_null());
  study.problem = Gemm();
  EXPECT_TRUE(curve_json(study).is_null());
}

TEST(ProblemFilePoints, AreReadAndChecked) {
  const auto file = [](const std::string& key, const std::string& more) {
    return ProblemFile::parse(R"({"schema":"deepgen.problem/1","target":"t","name":"f","namespace":"t",)"
                              R"("problem":")" +
                                  key + "\"," + more + R"("untuned":false})",
                              "problem.json");
  };
  const Gemm p = Gemm::parse(kKey);
  EXPECT_EQ(file(kKey, "").points, default_tune_points(p));
  EXPECT_FALSE(file(kKey, "").own_points);
  const ProblemFile own = file(kKey, R"("tune_at":["64","7"],"weights":[2,0.5],"kernels":3,)");
  EXPECT_EQ(own.points, tune_points(p, {"64", "7"}, {2, 0.5}, 3, "x"));
  EXPECT_TRUE(own.own_points);
  EXPECT_THROW(file(kKey, R"("tune_at":["0"],)"), Error);
  EXPECT_THROW(file(kKey, R"("tune_at":[1],)"), Error);
  EXPECT_THROW(file(kKey, R"("weights":[1],)"), Error);
  EXPECT_THROW(file(kKey, R"("kernels":0,)"), Error);
  EXPECT_THROW(file(Gemm().key(), R"("kernels":2,)"), Error);
}

} // namespace
} // namespace deepgen::ranged_entry_test
