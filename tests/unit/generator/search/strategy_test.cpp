#include "base/json/json.h"
#include "generator/search/strategy.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "generator/search/regression.h"
#include "tests/paths.h"
#include "tests/unit/generator/fake_template.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

namespace deepgen::strategy_test {
namespace {

using Truth = std::function<double(const Choice&)>; ///< a ratio; 0: it crashes

/// A search on the fake template's 132 configs, where measuring is asking `truth`.
class FakeSearch {
public:
  explicit FakeSearch(const std::string& strategy) {
    register_fake_template();
    in.arch = "fake";
    in.device = fake_device();
    in.slots = 12;
    in.options.strategy = strategy;
    in.options.patience = 0;
  }

  /// One round; false when its plan was empty.
  bool step(const Truth& truth) {
    const Plan plan = next_plan(in);
    EXPECT_LE(plan.slots.size(), in.slots);
    for (const PlanSlot& slot : plan.slots) {
      EXPECT_TRUE(tried.insert(slot.choice.text()).second) << "twice: " << slot.choice.text();
      EXPECT_EQ(why_illegal(in.problem, in.arch, in.device, slot.choice), "");
      record(slot, truth(slot.choice));
    }
    ++in.round;
    return !plan.slots.empty();
  }

  void run(const Truth& truth, int rounds = 1000) {
    for (int i = 0; i < rounds && step(truth); ++i) {
    }
  }

  double best() const {
    double best = 1e9;
    for (const Record& r : in.records)
      if (r.ok()) best = std::min(best, r.timing->ratio);
    return best;
  }

  SearchInput in;
  std::set<std::string> tried;

private:
  void record(const PlanSlot& slot, double ratio) {
    Record r;
    r.stage = "r" + std::to_string(in.round);
    r.problem = in.problem.key(), r.arch = in.arch;
    r.choice = slot.choice, r.origin = slot.origin;
    r.sha256 = slot.choice.text();
    r.status = ratio > 0 ? "ok" : "crash";
    if (ratio > 0) r.timing = Timing(), r.timing->ratio = ratio;
    in.records.push_back(r);
  }
};

/// Smooth, with the optimum 0.5 at isa=3 mr=5 nr=16 pack=1: far from the estimate's best.
double hill(const Choice& c) {
  const double nr = std::log2(double(c.config["nr"]) / 16), mr = double(c.config["mr"] - 5);
  return 0.5 + 0.03 * mr * mr + 0.05 * nr * nr + (c.config["isa"] == 3 ? 0 : 0.1) +
         (c.config["pack"] ? 0 : 0.07);
}

bool has_xgboost() {
  try {
    require_xgboost();
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Those that this build has; `guided`: only those that look at the times.
std::vector<std::string> names(bool guided = false) {
  std::vector<std::string> list;
  for (const std::string name : {"auto", "anneal", "genetic", "gbt", "xgboost", "grid", "random"})
    if ((name != "xgboost" || has_xgboost()) && !(guided && (name == "grid" || name == "random")))
      list.push_back(name);
  return list;
}

class StrategyTest : public testing::TestWithParam<std::string> {};

TEST_P(StrategyTest, IsDeterministicAndSeeded) {
  FakeSearch one(GetParam()), other(GetParam()), seeded(GetParam());
  seeded.in.options.seed = 2;
  for (FakeSearch* search : {&one, &other, &seeded}) search->run(hill, 5);
  EXPECT_EQ(one.tried, other.tried);
  if (GetParam() != "grid") {
    EXPECT_NE(one.tried, seeded.tried);
  }
}

TEST_P(StrategyTest, UsesUpTheSpaceWithoutRepeating) {
  FakeSearch search(GetParam());
  search.run(hill);
  EXPECT_EQ(search.tried.size(), 132u);
  EXPECT_EQ(search.best(), 0.5);
}

TEST_P(StrategyTest, TriesNoMoreThanItsTrials) {
  FakeSearch search(GetParam());
  search.in.options.trials = 29;
  search.run(hill);
  EXPECT_EQ(search.tried.size(), 29u);
}

TEST_P(StrategyTest, EndsWhenItsPatienceDoes) {
  FakeSearch search(GetParam());
  search.in.options.patience = 30;
  search.run([](const Choice&) { return 1.0; });
  EXPECT_EQ(search.tried.size(), 48u)
      << "the first round of 12, then 30 that were no better: in the third after it";
}

TEST_P(StrategyTest, LearnsTwiceBeforeItsPatienceEnds) {
  FakeSearch search(GetParam());
  search.in.slots = 40;
  search.in.options.patience = 30;
  search.run([](const Choice&) { return 1.0; });
  EXPECT_EQ(search.tried.size(), 120u) << "round 0 has learned nothing, and one more round learns once";
}

TEST(StrategiesTest, GuidedOnesFindTheOptimumEarly) {
  for (const std::string& name : names(true)) {
    int found = 0;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      FakeSearch search(name);
      search.in.options.seed = seed;
      search.in.options.trials = 66;
      search.run(hill);
      found += search.best() == 0.5;
    }
    EXPECT_GE(found, 6) << name << ", of 8 searches over half of the space";
  }
}

TEST_P(StrategyTest, SurvivesFailuresOnly) {
  FakeSearch search(GetParam());
  search.run([](const Choice&) { return 0.0; });
  EXPECT_EQ(search.tried.size(), 132u);
}

TEST_P(StrategyTest, RoundZeroBeginsWithTheDefaultAndTheIncumbent) {
  FakeSearch search(GetParam());
  search.in.incumbent = fake_choice(1, 1, 8, 1);
  const Plan plan = next_plan(search.in);
  ASSERT_EQ(plan.slots.size(), 12u);
  EXPECT_EQ(plan.slots[0].origin, "default");
  EXPECT_EQ(plan.slots[1].origin, "incumbent");
  EXPECT_EQ(plan.slots[1].choice, *search.in.incumbent);
  search.in.slots = 1;
  EXPECT_EQ(next_plan(search.in).slots.size(), 1u);
  search.in.slots = 0;
  EXPECT_TRUE(next_plan(search.in).slots.empty());
}

INSTANTIATE_TEST_SUITE_P(All, StrategyTest, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

TEST(StrategiesTest, AllAreTestedAndMayBeNamedInASearchFile) {
  EXPECT_EQ(names().size() + !has_xgboost(), strategies().size());
  std::vector<std::string> registered;
  for (const Strategy& s : strategies()) registered.push_back(s.name);
  EXPECT_EQ(registered, search_strategies());
}

TEST(StrategiesTest, LearnFromFailures) {
  for (const char* strategy : {"gbt", "auto"}) {
    FakeSearch search(strategy);
    search.in.slots = 24;
    search.run([](const Choice& c) { return c.config["pack"] ? 0 : hill(c); }, 2);
    search.in.slots = 12;
    int packed = 0;
    for (const PlanSlot& slot : next_plan(search.in).slots)
      packed += slot.origin == "model" && slot.choice.config["pack"] == 1;
    EXPECT_EQ(packed, 0) << strategy << " goes on with what always crashes";
  }
}

/// On an H200.
SearchInput of_hopper() {
  SearchInput in;
  in.problem = Gemm::parse(
      "gemm m=16 n=6144 k=4096 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2");
  in.arch = "sm_90a", in.slots = 40, in.options.strategy = "auto";
  std::istringstream lines(read_file(paths::in_source("benchmarks/gpu/model/h200.jsonl")));
  std::string line;
  std::getline(lines, line);
  in.device = Device::from_json(Json::parse(line).at("device"));
  return in;
}

/// The plan of round 1 after a round 0 with these ratios; the second argument counts slots.
Plan second_plan(SearchInput& in, const std::function<double(const Choice&, size_t)>& ratio) {
  in.round = 0, in.records.clear();
  size_t next = 0;
  for (const PlanSlot& slot : next_plan(in).slots) {
    Record r;
    r.stage = "r0", r.problem = in.problem.key(), r.arch = in.arch, r.choice = slot.choice,
    r.origin = slot.origin;
    r.sha256 = slot.choice.text(), r.status = "ok", r.timing = Timing();
    r.timing->ratio = ratio(slot.choice, next++);
    in.records.push_back(r);
  }
  ++in.round;
  return next_plan(in);
}

/// What no estimate tells: whether the fastest should begin before their predecessors end.
TEST(StrategiesTest, AutoTriesTheFastestWithTheOtherOverlap) {
  SearchInput in = of_hopper();
  // The last ones of round 0 are the fastest, each slower than the one behind it.
  const Plan plan = second_plan(in, [](const Choice&, size_t i) { return 2 - 1e-3 * double(i); });
  size_t checked = 0;
  for (size_t behind = 1; behind <= 2; ++behind) {
    Choice twin = in.records[in.records.size() - behind].choice;
    const auto pdl = std::find_if(twin.config.values.begin(), twin.config.values.end(),
                                  [](const auto& v) { return v.first == "pdl"; });
    ASSERT_NE(pdl, twin.config.values.end());
    pdl->second = pdl->second == 0 ? 2 : 0;
    const auto is_twin = [&](const auto& x) { return x.choice == twin; };
    if (std::any_of(in.records.begin(), in.records.end(), is_twin)) continue; // in round 0
    EXPECT_TRUE(std::any_of(plan.slots.begin(), plan.slots.end(), is_twin)) << twin.text();
    ++checked;
  }
  EXPECT_GT(checked, 0u);
}

/// Of two templates that serve a problem, the one whose best config so far is a little slower is searched on,
/// too.
TEST(StrategiesTest, AutoFollowsARivalTemplate) {
  SearchInput in = of_hopper();
  const auto neighbours = [&](double of_rival) {
    const Plan plan = second_plan(in, [&](const Choice& c, size_t i) {
      return (c.template_name == "hopper_ws"  ? 1
              : c.template_name == "mma_sync" ? of_rival
                                              : 3) +
             1e-4 * double(i);
    });
    return std::count_if(plan.slots.begin(), plan.slots.end(), [](const PlanSlot& s) {
      return s.origin == "neighbour" && s.choice.template_name == "mma_sync";
    });
  };
  EXPECT_GE(neighbours(1.08), 3);
  EXPECT_EQ(neighbours(1.5), 0);
}

TEST(StrategiesTest, UnknownOneListsTheOthers) {
  FakeSearch search("annealing");
  try {
    next_plan(search.in);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("use one of: auto, grid, random, anneal, genetic, gbt, xgboost"),
              std::string::npos)
        << e.what();
  }
}

#ifdef EXPECT_XGBOOST
TEST(StrategiesTest, XgboostIsThere) {
  FakeSearch search("xgboost");
  EXPECT_EQ(next_plan(search.in).slots.size(), 12u);
  EXPECT_TRUE(has_xgboost());
}
#else
TEST(StrategiesTest, XgboostSaysHowToGetIt) {
  FakeSearch search("xgboost");
  try {
    next_plan(search.in);
    FAIL() << "this build should be without it";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("libxgboost-dev"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("-DDEEPGEN_WITH_XGBOOST=ON"), std::string::npos) << e.what();
  }
}
#endif

class HistoryTest : public testing::Test {
protected:
  HistoryTest() : search("auto") {}

  void add(const Choice& choice, const std::string& status, double ratio = 0, const std::string& code = "",
           const std::string& stage = "r1") {
    Record r;
    r.stage = stage;
    r.problem = search.in.problem.key(), r.arch = "fake", r.choice = choice, r.status = status;
    r.sha256 = code.empty() ? choice.text() : code;
    if (ratio > 0) r.timing = Timing(), r.timing->ratio = ratio;
    search.in.records.push_back(r);
  }
  History history() const { return History(Space(search.in.problem, "fake", search.in.device), search.in); }

  FakeSearch search;
};

TEST_F(HistoryTest, TellsTimesFromFailuresFromWhatIsNotKnown) {
  add(fake_choice(1, 1, 8, 0), "ok", 1.0);
  add(fake_choice(1, 2, 8, 0), "crash");
  add(fake_choice(1, 3, 8, 0), "dropped", 4.0);
  add(fake_choice(1, 4, 8, 0), "dropped");
  add(fake_choice(1, 5, 8, 0), "ok", 0.8, "same code");
  add(fake_choice(1, 6, 8, 0), "duplicate", 0, "same code");
  const History h = history();
  ASSERT_EQ(h.trials().size(), 6u);
  EXPECT_EQ(h.best_ratio(), 0.8);
  EXPECT_EQ(h.speed(h.trials()[0]), 0.8);
  EXPECT_EQ(h.speed(h.trials()[1]), 0) << "a crash";
  EXPECT_EQ(h.speed(h.trials()[2]), 0.2);
  EXPECT_FALSE(h.trials()[3].decided) << "no time was left for it";
  EXPECT_EQ(h.trials()[5].ratio, 0.8) << "a duplicate is as fast as its double";
  EXPECT_EQ(h.best(3).size(), 3u);
}

TEST_F(HistoryTest, ProgressIsHalfAPercent) {
  add(fake_choice(1, 1, 8, 0), "ok", 1.0);
  add(fake_choice(1, 2, 8, 0), "ok", 0.997);
  add(fake_choice(1, 3, 8, 0), "crash");
  EXPECT_EQ(history().standstill().trials, 2u);
  add(fake_choice(1, 4, 8, 0), "ok", 0.994); // two small steps are progress too
  EXPECT_EQ(history().standstill().trials, 0u);
}

TEST_F(HistoryTest, AStandstillBeginsAfterRoundZero) {
  add(fake_choice(1, 1, 8, 0), "ok", 1.0, "", "r0");
  add(fake_choice(1, 2, 8, 0), "ok", 1.1, "", "r0");
  EXPECT_EQ(history().standstill().trials, 0u);
  add(fake_choice(1, 3, 8, 0), "ok", 1.2, "", "r1");
  add(fake_choice(1, 4, 8, 0), "crash", 0, "", "r1");
  add(fake_choice(1, 5, 8, 0), "ok", 1.2, "", "r2");
  EXPECT_EQ(history().standstill().trials, 3u);
  EXPECT_EQ(history().standstill().rounds, 2u);
  add(fake_choice(1, 6, 8, 0), "ok", 0.9, "", "r2");
  add(fake_choice(1, 7, 8, 0), "ok", 1.2, "", "r2");
  EXPECT_EQ(history().standstill().trials, 1u);
  EXPECT_EQ(history().standstill().rounds, 0u) << "round 2 was not in vain";
}

TEST_F(HistoryTest, LeavesOtherProblemsAndTheVendorOut) {
  add(fake_choice(1, 1, 8, 0), "ok", 1.0);
  add({"vendor", {}}, "ok", 0.5);
  add(fake_choice(1, 2, 8, 0), "ok", 0.5);
  search.in.records.back().problem = "gemm of something else";
  EXPECT_EQ(history().count(), 1u);
  EXPECT_EQ(history().best_ratio(), 1.0);
}

TEST(RegressionTest, TreesLearnAnInteractionAndAreDeterministic) {
  Table known(3), asked(3);
  std::vector<float> labels;
  auto truth = [](int x, int y) { return x < 5 && y < 3 ? 1.0F : 0.2F; };
  for (int x = 0; x < 10; ++x)
    for (int y = 0; y < 6; ++y) {
      asked.append({float(x), float(y), 7});
      if ((x + y) % 3) {
        known.append({float(x), float(y), 7});
        labels.push_back(truth(x, y));
      }
    }
  const std::vector<double> expected = boosted_trees(known, labels, asked);
  ASSERT_EQ(expected.size(), 60u);
  for (int x = 0; x < 10; ++x)
    for (int y = 0; y < 6; ++y)
      EXPECT_NEAR(expected[size_t(x * 6 + y)], double(truth(x, y)), 0.1) << x << " " << y;
  EXPECT_EQ(boosted_trees(known, labels, asked), expected);
}

TEST(RegressionTest, TreesOfOneRowOrOfEqualLabelsAreConstant) {
  Table one(1), asked(1);
  one.append({3});
  asked.append({-1});
  EXPECT_EQ(boosted_trees(one, {0.5F}, asked), std::vector<double>{0.5});
  one.append({4});
  EXPECT_EQ(boosted_trees(one, {0.25F, 0.25F}, asked), std::vector<double>{0.25});
}

} // namespace
} // namespace deepgen::strategy_test
