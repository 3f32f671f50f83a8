// An attention that is tuned for several calls: its kernels without measurements, its search, its lock entry.
#include "base/problem/partition.h"
#include "base/search/ranged_decision.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"
#include "generator/lock/ranged_entry.h"
#include "generator/lock/select.h"
#include "generator/search/ranged_search.h"
#include "generator/space/ranged_default.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deepgen::attention_calls_test {
namespace {

std::string key_of(const std::string& types, const std::string& calls, const std::string& options = "none") {
  return "attention heads=32 kv_heads=8 head_dim=128 value_dim=128 " + types +
         " mask=causal queries=4096 keys=16384 options=" + options + " " + calls;
}

constexpr const char* kF32 = "q=f32 kv=f32 out=f32";
constexpr const char* kBf16 = "q=bf16 kv=bf16 out=bf16";
constexpr const char* kCalls = "at=1x1x8192+1x512x512+1x2048x2048+16x1x4096";
constexpr Sizes kDecode = {1, 8192, 1, 1}, kPrefill = {2048, 2048, 1, 1};

Device device_of(const std::string& arch) {
  return arch == "cpu" ? generic_device("cpu") : generic_gpu(arch);
}

int64_t splits_of(const Choice& c) {
  for (const auto& [name, value] : c.config.values)
    if (name == "splits") return value;
  return 0;
}

TEST(AttentionCalls, DefaultsShareAllCalls) {
  for (const char* arch : {"cpu", "sm_80", "sm_90a", "gfx942"}) {
    SCOPED_TRACE(arch);
    const Problem p = Problem::parse(key_of(std::string(arch) == "cpu" ? kF32 : kBf16, kCalls));
    const Device device = device_of(arch);
    const auto parts = ranged_default(p, arch, device, default_tune_points(p));
    EXPECT_GT(parts.size(), 1u) << "one query and thousands want other blocks";
    std::vector<SizeSpan> boxes;
    for (const RangedChoice& part : parts) {
      EXPECT_EQ(why_illegal(p, arch, device, part.choice), "") << part.choice.text();
      boxes.push_back(part.taken);
    }
    EXPECT_EQ(why_no_partition(all_calls(p), boxes), "");
    TunePoints one = default_tune_points(p);
    one.kernels = 1;
    EXPECT_EQ(ranged_default(p, arch, device, one).size(), 1u);
  }
}

/// Of few queries; those of many have no use for it, and yet the parameter.
TEST(AttentionCalls, KernelsOfFewQueriesAreSplit) {
  const Problem p = Problem::parse(key_of(kBf16, kCalls));
  const Device device = generic_gpu("sm_80");
  const auto parts = ranged_default(p, "sm_80", device, default_tune_points(p));
  for (const RangedChoice& part : parts) {
    if (part.taken.holds(kDecode)) {
      EXPECT_GT(splits_of(part.choice), 1) << part.choice.text();
    }
    if (part.taken.holds(kPrefill)) {
      EXPECT_EQ(splits_of(part.choice), 1) << part.choice.text();
    }
  }
  // Scratch is that of the largest call that may be split: 16 queries, not 2048.
  const Template& t = find_template("mma_attention");
  const Problem decode = Problem::parse(key_of(kBf16, "at_batch=16 at_queries=1 at_keys=4096"));
  for (const RangedChoice& part : parts)
    if (splits_of(part.choice) > 1) {
      EXPECT_EQ(t.workspace(p, part.choice.config), t.workspace(decode, part.choice.config));
      EXPECT_EQ(t.workspace(p.at(kDecode), part.choice.config), t.workspace(p, part.choice.config));
    }
}

TEST(AttentionCalls, OfAFixedNumberOfSplitsAllKernelsHaveIt) {
  SearchInput in;
  in.problem = Problem::parse(key_of(kBf16, std::string("splits=4 ") + kCalls));
  in.slots = 24;
  for (const char* arch : {"sm_80", "gfx942"}) {
    in.arch = arch, in.device = generic_gpu(arch);
    for (const RangedChoice& part :
         ranged_default(in.problem, arch, in.device, default_tune_points(in.problem)))
      EXPECT_EQ(splits_of(part.choice), 4) << part.choice.text();
    const Plan plan = next_ranged_plan(in, {});
    EXPECT_EQ(plan.slots.size(), in.slots);
    for (const PlanSlot& slot : plan.slots) EXPECT_EQ(splits_of(slot.choice), 4) << slot.choice.text();
  }
}

TEST(AttentionCalls, EachIsSearchedWithWhatOthersHaveFound) {
  SearchInput in;
  in.problem = Problem::parse(key_of(kBf16, kCalls));
  in.arch = "sm_90a", in.device = generic_gpu("sm_90a"), in.slots = 30;
  const Plan first = next_ranged_plan(in, {});
  ASSERT_EQ(first.slots.size(), in.slots);
  EXPECT_EQ(first.slots[0].origin, "default");
  EXPECT_EQ(first.points, default_tune_points(in.problem));
  EXPECT_EQ(Plan::parse(first.serialize(), "x").slots.size(), first.slots.size());
  size_t hopper = 0, split = 0;
  for (const PlanSlot& slot : first.slots) {
    EXPECT_EQ(why_illegal(in.problem, in.arch, in.device, slot.choice), "") << slot.choice.text();
    EXPECT_TRUE(slot.at.empty()) << "timed at all calls";
    hopper += slot.choice.template_name == "hopper_attention", split += splits_of(slot.choice) > 1;
  }
  EXPECT_GT(hopper, 3u) << "for many queries";
  EXPECT_GT(split, 3u) << "for one query";
  for (const PlanSlot& slot : first.slots) {
    Record r;
    r.problem = in.problem.key(), r.arch = in.arch, r.choice = slot.choice, r.origin = slot.origin;
    r.sha256 = std::string(64, char('a' + in.records.size() % 6));
    for (const Sizes& at : first.points.at) {
      const double ratio = 1 + 0.01 * double(in.records.size()) + 1e-6 * double(at.m);
      r.points.push_back({at, {ratio, ratio, ratio, ratio, ratio, ratio, 9, 1}});
    }
    r.timing = mean_timing(r.points);
    in.records.push_back(r);
  }
  in.round = 1;
  const Plan second = next_ranged_plan(in, {});
  EXPECT_GT(second.slots.size(), 10u);
  for (const PlanSlot& slot : second.slots)
    for (const PlanSlot& before : first.slots) EXPECT_NE(slot.choice, before.choice);
}

/// Two kernels, the second of which is better for many queries.
class AttentionEntry : public testing::Test {
protected:
  Problem p = Problem::parse(key_of(kBf16, kCalls));
  Device device = generic_gpu("sm_80");
  RecordLog final;

  void SetUp() override {
    device.name = "Some GPU", device.present = true;
    const TunePoints points =
        tune_points(p, {"1x1x8192", "16x1x4096", "1x512x512", "1x2048x2048"}, {5, 1, 1, 2}, 4, "x");
    final.environment["tune_at"] = tune_points_json(points);
    final.noise_floor = 0.01;
    add(kDecode, "default", 'a', 1, 1);
    add(kPrefill, "model", 'b', 2, 0.5);
    std::vector<RangedHoldout> holdout;
    for (const Sizes& at : points.at)
      holdout.push_back({at, std::string(64, at.m < 100 ? 'a' : 'b'), {1e-5, 0.8, 0.79, 0.81, 0}});
    final.environment["points"] = to_json(holdout);
  }
  void add(const Sizes& like, const std::string& origin, char code, double few, double many) {
    Record r;
    r.stage = "final", r.problem = p.key(), r.arch = "sm_80", r.origin = origin;
    r.choice = Space(p.at(like), "sm_80", device).default_choice();
    r.revision = find_template(r.choice.template_name).revision();
    r.sha256 = std::string(64, code), r.code_bytes = 100;
    for (const Sizes& x : final_points(points_of(p, final)).at) {
      const double ratio = x.m < 100 ? few : many;
      r.points.push_back({x, {ratio * 1e-6, ratio * 1e-6, ratio * 1e-6, ratio, ratio, ratio, 9, 1}});
    }
    r.timing = mean_timing(r.points);
    final.records.push_back(r);
  }
  LockEntry entry() const { return ranged_entry(p, "sm_80", device, "tools", final, {final}); }
  SelectRequest request(const Problem& problem, size_t kernels = 16) const {
    SelectRequest r;
    r.file.target = "kernels", r.file.name = "f", r.file.ns = "kernels", r.file.problem = problem;
    r.arch = "sm_80", r.device = device;
    r.file.points = default_tune_points(problem), r.file.points.kernels = kernels;
    return r;
  }
};

TEST_F(AttentionEntry, HasKernelsWithTheirCallsAndTheEvidence) {
  const LockEntry e = entry();
  EXPECT_EQ(why_stale(e), "");
  ASSERT_EQ(e.ranges.size(), 1u);
  EXPECT_EQ(e.ranges[0].sha256, std::string(64, 'a'));
  ASSERT_TRUE(e.taken);
  EXPECT_TRUE(e.taken->holds(kPrefill)) << "the last one has the largest calls";
  EXPECT_FALSE(e.taken->holds(kDecode));
  const std::string text = ranges_text(e);
  EXPECT_NE(text.find("batch 1..65536, queries 1.."), std::string::npos) << text;
  EXPECT_NE(text.find("batch=1 queries=1 keys=8192: 1.250x vs default, weight 5\n"), std::string::npos)
      << text;
  Lock lock;
  lock.put(e);
  EXPECT_EQ(Lock::parse(lock.serialize(), "x").entries()[0].line(), e.line());
  EXPECT_EQ(why_too_many(e, 1), "it links 2 kernels, and KERNELS is 1");
  EXPECT_EQ(tuned_for_others(e, p, points_of(p, final)), "");
  EXPECT_EQ(tuned_for_others(e, p, default_tune_points(p)),
            "1x1x8192 (weight 5) 16x1x4096 1x512x512 1x2048x2048 (weight 2)");
}

TEST_F(AttentionEntry, IsWhatABuildTakes) {
  Lock lock;
  lock.put(entry());
  const Selected s = select(Mode::frozen, lock, "", {request(p)})[0];
  EXPECT_EQ(s.choice.origin, "lock");
  ASSERT_EQ(s.choice.ranges.size(), 1u);
  EXPECT_TRUE(s.choice.main.taken->holds(kPrefill));
  EXPECT_EQ(ChoiceFile::parse(s.choice.serialize(), "x").serialize(), s.choice.serialize());
  EXPECT_THROW(select(Mode::frozen, lock, "", {request(p, 1)}), Error);
  // Other calls are another key; what was tuned for is said.
  const Problem others = Problem::parse(key_of(kBf16, "at=1x1x8192+1x2048x2048"));
  try {
    select(Mode::frozen, lock, "", {request(others)});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("it was tuned for other calls: "), std::string::npos) << e.what();
  }
  LockEntry hole = entry();
  hole.ranges[0].taken.least.batch = 2;
  EXPECT_NE(why_stale(hole), "") << "nobody takes a batch of 1";
}

TEST(AttentionProblemFile, HasTheWeightsOfTheCallsOfItsKey) {
  const auto file = [](const std::string& key, const std::string& more) {
    return ProblemFile::parse(R"({"schema":"deepgen.problem/1","target":"t","name":"f","namespace":"t",)"
                              R"("problem":")" +
                                  key + "\"," + more + R"("untuned":false})",
                              "problem.json");
  };
  const std::string key = key_of(kF32, "at=1x1x64+1x64x64");
  EXPECT_EQ(file(key, "").points.at, (std::vector<Sizes>{{1, 64, 1, 1}, {64, 64, 1, 1}}));
  const ProblemFile own = file(key, R"("tune_at":["1x64x64","1x1x64"],"weights":[2,0.5],"kernels":3,)");
  EXPECT_EQ(own.points.weights, (std::vector<double>{0.5, 2}));
  EXPECT_EQ(own.points.kernels, 3u);
  EXPECT_THROW(file(key, R"("tune_at":["1x64x64","1x2x64"],)"), Error);
  EXPECT_THROW(file(key_of(kF32, "at_batch=1 at_queries=1 at_keys=1"), R"("kernels":2,)"), Error);
}

} // namespace
} // namespace deepgen::attention_calls_test
