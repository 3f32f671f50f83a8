#include "base/search/plan.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "generator/search/search.h"
#include "generator/space/space.h"
#include "tests/unit/generator/fake_template.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <set>

namespace deepgen::plan_test {
namespace {

class PlanTest : public testing::Test {
protected:
  void SetUp() override { register_fake_template(); }

  SearchInput input(int round = 0, size_t slots = 32) {
    SearchInput in;
    in.arch = "fake";
    in.device = fake_device();
    in.round = round;
    in.slots = slots;
    return in;
  }

  /// What measuring a plan gives on a machine where the true time is `ratio(choice)`.
  template <typename Ratio>
  void measure(const Plan& plan, SearchInput& in, Ratio ratio) {
    for (const PlanSlot& slot : plan.slots) {
      Record r;
      r.stage = "r" + std::to_string(plan.round);
      r.problem = in.problem.key();
      r.arch = in.arch;
      r.choice = slot.choice;
      r.origin = slot.origin;
      r.timing = Timing();
      r.timing->ratio = ratio(slot.choice);
      in.records.push_back(r);
    }
  }
};

TEST_F(PlanTest, FirstRoundHoldsDefaultIncumbentModelAndRandom) {
  SearchInput in = input();
  in.incumbent = fake_choice(1, 1, 8, 1);
  const Plan plan = next_plan(in);
  ASSERT_EQ(plan.slots.size(), 32u);
  EXPECT_EQ(plan.slots[0].origin, "default");
  EXPECT_EQ(plan.slots[0].choice, Space(in.problem, in.arch, in.device).default_choice());
  EXPECT_EQ(plan.slots[1].origin, "incumbent");
  EXPECT_EQ(plan.slots[1].choice, *in.incumbent);
  std::map<std::string, int> origins;
  std::set<std::string> texts;
  for (const PlanSlot& slot : plan.slots) {
    ++origins[slot.origin];
    EXPECT_TRUE(texts.insert(slot.choice.text()).second) << "twice: " << slot.choice.text();
  }
  EXPECT_EQ(origins["random"], 5);
  EXPECT_EQ(origins["model"], 25);
}

TEST_F(PlanTest, FirstRoundSpreadsOverStrata) {
  const SearchInput in = input(0, 16);
  const Space space(in.problem, in.arch, in.device);
  std::map<std::vector<uint64_t>, int> strata;
  for (const PlanSlot& slot : next_plan(in).slots)
    if (slot.origin == "model") ++strata[space.stratum(*space.rank(slot.choice), 3)];
  EXPECT_EQ(strata.size(), 13u) << "pack alone tells no two of them apart";
}

TEST_F(PlanTest, IncumbentThatIsTheDefaultOrIllegalTakesNoSlot) {
  SearchInput in = input(0, 8);
  const Plan plain = next_plan(in);
  in.incumbent = plain.slots[0].choice;
  EXPECT_EQ(next_plan(in).serialize(), plain.serialize());
  in.incumbent = fake_choice(4, 8, 64, 0);
  EXPECT_EQ(next_plan(in).serialize(), plain.serialize());
}

TEST_F(PlanTest, IsDeterministic) {
  SearchInput in = input(), other = input();
  other.options.seed = 2;
  EXPECT_EQ(next_plan(in).serialize(), next_plan(in).serialize());
  EXPECT_NE(next_plan(in).serialize(), next_plan(other).serialize()) << "the seed matters";
  measure(next_plan(in), in, [](const Choice&) { return 1.0; });
  in.round = 1;
  EXPECT_EQ(next_plan(in).serialize(), next_plan(in).serialize());
}

TEST_F(PlanTest, LaterRoundsMixModelNeighboursAndRandom) {
  SearchInput in = input(0, 24);
  auto truth = [](const Choice& c) { return c.config == fake_choice(3, 5, 16, 1).config ? 0.5 : 1.0; };
  measure(next_plan(in), in, truth);
  Record best = in.records[0];
  best.choice = fake_choice(3, 4, 16, 1); // next to the optimum
  best.timing->ratio = 0.7;
  in.records.push_back(best);
  in.round = 1;
  in.slots = 16;
  const Plan plan = next_plan(in);
  std::map<std::string, int> origins;
  for (const PlanSlot& slot : plan.slots) ++origins[slot.origin];
  EXPECT_EQ(origins["random"], 1);
  EXPECT_EQ(origins["model"] + origins["neighbour"], 15);
  EXPECT_GE(origins["neighbour"], 7);
  EXPECT_TRUE(std::any_of(plan.slots.begin(), plan.slots.end(), [](auto& s) {
    return s.choice == fake_choice(3, 5, 16, 1);
  })) << "the optimum is a neighbour of the best measured";
}

TEST_F(PlanTest, RecordsOfAnotherProblemAndFailuresAreNoParents) {
  SearchInput in = input(1, 8);
  Record r;
  r.problem = "gemm of something else", r.arch = in.arch, r.choice = fake_choice(1, 1, 8, 0),
  r.timing = Timing();
  in.records = {r};
  const std::string plain = next_plan(input(1, 8)).serialize();
  EXPECT_EQ(next_plan(in).serialize(), plain);
  in.records[0].problem = in.problem.key();
  in.records[0].status = "crash";
  for (const PlanSlot& slot : next_plan(in).slots) {
    EXPECT_NE(slot.origin, "neighbour");
    EXPECT_NE(slot.choice, r.choice) << "what crashed is not tried again";
  }
}

TEST_F(PlanTest, FileRoundTrips) {
  const Plan plan = next_plan(input(0, 6));
  const std::string path = testing::TempDir() + "plan_test.json";
  write_atomically(path, plan.serialize());
  EXPECT_EQ(Plan::read(path).serialize(), plan.serialize());
  std::filesystem::remove(path);
}

TEST_F(PlanTest, SizesOfASlotAreOfTheRanges) {
  Plan plan;
  plan.problem = Problem::parse("gemm m=1..512 n=64 k=64 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn "
                                "epilogue=none align=4");
  plan.points = default_tune_points(plan.problem.gemm());
  plan.slots = {{fake_choice(1, 1, 8, 1), "default", {}},
                {fake_choice(1, 1, 8, 2), "model", {{1, 64, 64, 1}, {300, 64, 64, 1}}}};
  const std::string text = plan.serialize();
  const Plan read = Plan::parse(text, "x");
  EXPECT_EQ(read.serialize(), text);
  EXPECT_TRUE(read.slots[0].at.empty());
  EXPECT_EQ(read.slots[1].at, plan.slots[1].at);
  const auto refused = [&](const std::string& what, const std::string& by) {
    std::string bad = text;
    bad.replace(bad.find(what), what.size(), by);
    EXPECT_THROW(Plan::parse(bad, "x"), Error) << bad;
  };
  refused("[300,64,64,1]", "[513,64,64,1]");
  refused("[300,64,64,1]", "[0,64,64,1]");
  refused("[300,64,64,1]", "[300,65,64,1]");
  refused("[300,64,64,1]", "[300,64,64]");
  refused("m=1..512", "m=512");
}

} // namespace
} // namespace deepgen::plan_test
