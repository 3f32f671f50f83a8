// What a problem with ranges is built from without measurements.
#include "generator/space/ranged_default.h"

#include "base/problem/partition.h"
#include "base/problem/points.h"
#include "base/ranges/crossover.h"
#include "generator/lock/select.h"
#include "generator/search/between.h"
#include "generator/search/ranged_search.h"
#include "generator/space/order_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace deepgen::ranged_default_test {
namespace {

std::string layer(const std::string& sizes) {
  return "gemm " + sizes + " a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4";
}

Device device_of(int64_t level) {
  Device device;
  device.isa = level;
  return device;
}

TEST(RangedDefault, CoversEverySizeOnce) {
  for (const char* sizes : {"m=1..8192 n=1024 k=1024 batch=1", "m=0..2 n=64 k=64 batch=1",
                            "m=512 n=512 k=16..65536 batch=1", "m=3..50 n=10..70 k=40 batch=1..9"})
    for (int64_t level : {1, 3, 4}) {
      SCOPED_TRACE(sizes);
      const Gemm p = Gemm::parse(layer(sizes));
      const std::vector<RangedChoice> parts =
          ranged_default(p, "cpu", device_of(level), default_tune_points(p));
      ASSERT_GE(parts.size(), 1u);
      EXPECT_LE(parts.size(), CrossoverRules().most_kernels);
      std::vector<SizeSpan> boxes;
      for (const RangedChoice& part : parts) {
        EXPECT_EQ(why_illegal(p, "cpu", device_of(level), part.choice), "");
        boxes.push_back(part.taken);
      }
      EXPECT_EQ(why_no_partition(all_calls(p), boxes), "");
    }
}

/// By the estimate, which is all that there is.
TEST(RangedDefault, IsNoSlowerAtItsPointsThanTheRuleOfTheCrossover) {
  const Gemm p = Gemm::parse(layer("m=1..4096 n=512 k=512 batch=1"));
  const Device device = device_of(3);
  const std::vector<RangedChoice> parts = ranged_default(p, "cpu", device, default_tune_points(p));
  EXPECT_GT(parts.size(), 1u) << "one token and thousands want other tiles";
  for (const Sizes& at : default_points(p)) {
    const Choice best = Space(p.at(at), "cpu", device).default_choice();
    const Template& t = find_template(best.template_name);
    for (const RangedChoice& part : parts)
      if (part.taken.holds(at)) {
        EXPECT_LE(t.cost(p.at(at), device, part.choice.config), 1.10 * t.cost(p.at(at), device, best.config))
            << at.m;
      }
  }
}

TEST(RangedDefault, PointsAndKernelsOfTheUserCount) {
  const Gemm p = Gemm::parse(layer("m=1..4096 n=512 k=512 batch=1"));
  const Device device = device_of(3);
  const auto parts = [&](const std::vector<std::string>& at, const std::vector<double>& weights,
                         size_t kernels) {
    return ranged_default(p, "cpu", device, tune_points(p, at, weights, kernels, "x"));
  };
  EXPECT_EQ(parts({}, {}, 1).size(), 1u);
  const std::vector<RangedChoice> few = parts({"1"}, {}, 6), many = parts({"4096"}, {}, 6);
  ASSERT_EQ(few.size(), 1u);
  ASSERT_EQ(many.size(), 1u);
  EXPECT_EQ(few[0].choice, Space(p.at({1, 512, 512, 1}), "cpu", device).default_choice());
  EXPECT_EQ(many[0].choice, Space(p.at(p.sizes()), "cpu", device).default_choice());
  EXPECT_EQ(few[0].taken.most.m, 4096) << "one kernel takes all";
  ASSERT_NE(few[0].choice, many[0].choice);
  // Of one kernel, where most calls are; but none that loses much at a point, where another does not.
  EXPECT_EQ(parts({"1", "4096"}, {1, 0}, 2).size(), 2u);
}

TEST(RangedDefault, SelectWritesAChoiceForEachPart) {
  SelectRequest request;
  request.file.target = "kernels", request.file.name = "f", request.file.ns = "kernels";
  request.file.problem = Gemm::parse(layer("m=1..4096 n=512 k=512 batch=1"));
  request.device = device_of(3);
  const ChoiceFile choice = select(Mode::lock, Lock(), "", {request})[0].choice;
  ASSERT_FALSE(choice.ranges.empty());
  ASSERT_TRUE(choice.main.taken.has_value());
  EXPECT_EQ(choice.main.taken->most.m, 4096) << "the main one is that of the largest sizes";
  const ChoiceFile read = ChoiceFile::parse(choice.serialize(), "x");
  EXPECT_EQ(read.serialize(), choice.serialize());
  EXPECT_EQ(read.ranges.size(), choice.ranges.size());
  EXPECT_EQ(read.ranges[0].taken, choice.ranges[0].taken);
}

TEST(RangedSearch, CandidatesThatTheEstimateTellsApartComeFirst) {
  const Problem p = Problem::parse("gemm m=208 n=1024 k=1024 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt "
                                   "epilogue=none align=2");
  const Device device = generic_gpu("sm_90a");
  const Space space(p, "sm_90a", device);
  std::vector<PlanSlot> list;
  for (size_t rank = 0; rank < 60; ++rank) list.push_back({space.choice(rank), "model", {}});
  const std::vector<PlanSlot> before = list;
  put_different_first(p, device, list);
  ASSERT_EQ(list.size(), before.size());
  const auto cost = [&](const PlanSlot& slot) {
    return find_template(slot.choice.template_name).cost(p, device, slot.choice.config);
  };
  const auto alike = [&](const PlanSlot& x, const PlanSlot& y) {
    return std::abs(std::log(cost(x) / cost(y))) <= std::log(1.003);
  };
  const auto place = [&](const PlanSlot& slot) {
    return std::find_if(before.begin(), before.end(),
                        [&](const PlanSlot& x) { return x.choice == slot.choice; });
  };
  size_t different = 1;
  while (different < list.size() && cost(list[different]) >= cost(list[different - 1]) &&
         !alike(list[different], list[different - 1]))
    ++different;
  EXPECT_GE(different, 3u);
  EXPECT_LT(different, 50u) << "several of the best differ in stages alone";
  for (size_t i = different; i < list.size(); ++i) {
    EXPECT_TRUE(std::any_of(list.begin(), list.begin() + long(different), [&](const PlanSlot& x) {
      return alike(x, list[i]);
    })) << list[i].choice.text();
    if (i > different) {
      EXPECT_LT(place(list[i - 1]), place(list[i])) << "in their order";
    }
  }
}

TEST(RangedSearch, CandidatesOfAGpuAreTimedWhereTheyMayBeGood) {
  SearchInput in;
  in.problem = Problem::parse("gemm m=1..2048 n=512 k=512 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt "
                              "epilogue=none align=2");
  in.arch = "sm_80", in.device = generic_gpu("sm_80"), in.slots = 40;
  const std::vector<Sizes> dense = dense_points(default_tune_points(in.problem.gemm())).at;
  const Plan plan = next_ranged_plan(in, {});
  ASSERT_EQ(plan.slots.size(), in.slots);
  EXPECT_EQ(plan.slots[0].origin, "default");
  EXPECT_TRUE(plan.slots[0].at.empty()) << "the default is timed at all";
  size_t pairs = 0;
  for (const Sizes& at : dense) {
    const auto tried = std::count_if(plan.slots.begin(), plan.slots.end(), [&](const PlanSlot& slot) {
      return std::count(slot.at.begin(), slot.at.end(), at) > 0;
    });
    EXPECT_GE(tried, 1) << at.m;
    pairs += size_t(tried);
  }
  EXPECT_LT(pairs, 3 * dense.size() * plan.slots.size() / 4) << "not everybody everywhere";
  // Where a user says where to tune, candidates are timed there, all of them.
  in.points = tune_points(in.problem.gemm(), {"16", "2048"}, {}, 4, "test");
  for (const PlanSlot& slot : next_ranged_plan(in, {}).slots) EXPECT_TRUE(slot.at.empty());
  in.points = {};
  in.arch = "cpu", in.device = device_of(3);
  in.problem = Problem::parse(layer("m=1..2048 n=512 k=512 batch=1"));
  for (const PlanSlot& slot : next_ranged_plan(in, {}).slots) EXPECT_TRUE(slot.at.empty());
}

SearchInput of_hopper() {
  SearchInput in;
  in.problem = Problem::parse("gemm m=128..2048 n=4096 k=4096 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 "
                              "layout=nt epilogue=none align=2");
  in.arch = "sm_90a", in.device = generic_gpu("sm_90a"), in.slots = 30;
  in.options.templates["hopper_ws"].values = {{"cluster_m", {1}}, {"cluster_n", {1}}, {"cluster_k", {1}},
                                              {"splits", {1}},    {"stream_k", {0}},  {"slices", {1}},
                                              {"consumers", {2}}}; // spaces of all take long
  return in;
}

/// Tiles of 144 columns serve 1065 to 1152 rows in two waves; at 1024 and 1412 others are better.
TEST(RangedSearch, CandidatesAreProposedForSizesBetween) {
  const SearchInput in = of_hopper();
  const Gemm& p = in.problem.gemm();
  const auto space_at = [&](int64_t m) {
    return Space(problem_at(p, in.arch, {m, 4096, 4096, 1}), in.arch, in.device, in.options);
  };
  std::vector<Choice> chosen;
  for (const int64_t m : {128, 512, 2048}) chosen.push_back(space_at(m).default_choice());
  const std::vector<Choice> found = best_between(in, chosen, 10);
  ASSERT_GE(found.size(), 2u);
  const auto best = [&](const std::vector<Choice>& list, int64_t m) {
    double least = 1;
    for (const Choice& c : list)
      least = std::min(least, find_template(c.template_name)
                                  .cost(problem_at(p, in.arch, {m, 4096, 4096, 1}), in.device, c.config));
    return least;
  };
  size_t better = 0;
  for (int64_t m = 512; m <= 2048; m += 32) better += best(found, m) < 0.99 * best(chosen, m);
  EXPECT_GE(better, 8u) << "of 49";
  for (const Choice& c : found) EXPECT_EQ(why_illegal(in.problem, in.arch, in.device, c), "") << c.text();
  EXPECT_TRUE(best_between(in, {}, 4).empty());
  const Plan plan = next_ranged_plan(in, {});
  std::vector<Choice> planned;
  for (const PlanSlot& slot : plan.slots) planned.push_back(slot.choice);
  for (int64_t m = 512; m <= 2048; m += 32) EXPECT_LE(best(planned, m), 1.05 * best(found, m)) << m;
}

/// With swap, tiles are offered for few rows alone, of widths that end with M: not in the space of the
/// largest call, nor at 512 or 1024 for 724 to 736 rows.
TEST(RangedSearch, SwappedTilesAreProposedForSizesBetween) {
  SearchInput in = of_hopper();
  in.options.templates["hopper_ws"].values["consumers"] = {1};
  Choice chosen =
      Space(problem_at(in.problem.gemm(), in.arch, {512, 4096, 4096, 1}), in.arch, in.device, in.options)
          .default_choice();
  chosen.config.set("bm", 128), chosen.config.set("bn", 128), chosen.config.set("swap", 1);
  chosen.config.set("stages", 4);
  ASSERT_EQ(why_illegal(in.problem, in.arch, in.device, chosen), "");
  const std::vector<Choice> found = best_between(in, {chosen}, 20);
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const Choice& c) {
    return c.config["swap"] == 1 && c.config["bn"] % 16 == 8;
  })) << "widths of 8 more than a multiple of 16";
  for (const Choice& c : found) {
    EXPECT_EQ(c.config["consumers"], 1) << c.text();
    EXPECT_EQ(why_illegal(in.problem, in.arch, in.device, c), "") << c.text();
  }
}

/// What no estimate tells: the best of a round begins before its predecessor ends, so the next has one that
/// does not.
TEST(RangedSearch, TheBestOfARoundIsTriedWithTheOtherOverlap) {
  SearchInput in = of_hopper();
  const Plan first = next_ranged_plan(in, {});
  const auto overlaps = [](const Choice& c) {
    return std::any_of(c.config.values.begin(), c.config.values.end(),
                       [](const auto& v) { return v.first == "pdl" && v.second == 2; });
  };
  // The last ones are proposed for a size, and keep to the options.
  const auto best = std::find_if(first.slots.rbegin(), first.slots.rend(),
                                 [&](const PlanSlot& s) { return overlaps(s.choice); });
  ASSERT_NE(best, first.slots.rend());
  for (const PlanSlot& slot : first.slots) {
    Record r;
    r.stage = "r0", r.problem = in.problem.key(), r.arch = in.arch, r.choice = slot.choice;
    r.origin = slot.origin;
    const double seconds = slot.choice == best->choice ? 1e-5 : 2e-5;
    for (const Sizes& at : dense_points(default_tune_points(in.problem.gemm())).at)
      r.points.push_back({at, {seconds, seconds, seconds, seconds / 2e-5, 1, 1, 9, 1}});
    r.timing = mean_timing(r.points);
    in.records.push_back(r);
  }
  in.round = 1;
  const Plan second = next_ranged_plan(in, {});
  ASSERT_FALSE(second.slots.empty());
  Choice expected = best->choice;
  expected.config.set("pdl", 0);
  EXPECT_EQ(second.slots[0].choice, expected) << second.slots[0].choice.text();
  EXPECT_EQ(second.slots[0].origin, "neighbour");
}

} // namespace
} // namespace deepgen::ranged_default_test
