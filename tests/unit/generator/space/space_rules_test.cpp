#include "base/text/error.h"
#include "generator/lock/select.h"
#include "generator/search/search.h"
#include "generator/space/sample.h"
#include "generator/space/space.h"
#include "tests/unit/generator/fake_template.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace deepgen::space_rules_test {
namespace {

class SpaceRulesTest : public testing::Test {
protected:
  void SetUp() override { register_fake_template(); }

  static Space space(const std::string& members, const std::optional<Choice>& also = {}) {
    return Space(Gemm(), "fake", fake_device(), options(members), also);
  }
  static SearchOptions options(const std::string& members) {
    return SearchOptions::parse("{\"schema\":\"deepgen.search/1\"," + members + "}", "s.json");
  }
  static std::set<int64_t> values(const Space& space, const std::string& parameter) {
    std::set<int64_t> all;
    for (size_t i = 0; i < space.size(); ++i) all.insert(space.choice(i).config[parameter]);
    return all;
  }
  static std::string failure(const std::string& members) {
    try {
      space(members).default_choice();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(SpaceRulesTest, RestrictsParameters) {
  const Space few = space(R"("templates":{"fake_tile":{"mr":[4,2],"pack":[1]}})");
  EXPECT_EQ(values(few, "mr"), (std::set<int64_t>{2, 4}));
  EXPECT_EQ(values(few, "pack"), (std::set<int64_t>{1}));
  EXPECT_EQ(values(few, "nr"), (std::set<int64_t>{8, 16, 32, 64}));
  EXPECT_EQ(few.size(), 3u * (4 + 3)) << "of mr=4, nr=64 is illegal";
  EXPECT_EQ(few.default_choice(), fake_choice(4, 2, 64, 1)) << "the cheapest of what is left";
  EXPECT_TRUE(few.notes().empty());
}

TEST_F(SpaceRulesTest, ExtendsParametersWithinTheConstraints) {
  const Space more = space(R"("templates":{"fake_tile":{"nr":{"add":[24,128]}}})");
  EXPECT_EQ(values(more, "nr"), (std::set<int64_t>{8, 16, 24, 32, 64, 128}));
  EXPECT_TRUE(more.rank(fake_choice(4, 5, 24, 0)));
  EXPECT_FALSE(more.rank(fake_choice(4, 6, 24, 0))) << "144 accumulators";
  EXPECT_TRUE(more.rank(fake_choice(4, 1, 128, 0)));
  EXPECT_FALSE(more.rank(fake_choice(4, 2, 128, 0)));
  const auto near = more.neighbours(*more.rank(fake_choice(3, 1, 16, 0)));
  EXPECT_TRUE(std::any_of(near.begin(), near.end(), [&](size_t r) {
    return more.choice(r) == fake_choice(3, 1, 24, 0);
  })) << "between 16 and 32";
}

TEST_F(SpaceRulesTest, WhatIsExtendedIsLegalForALock) {
  auto why = [](const std::string& config) {
    return why_illegal(Gemm(), "fake", fake_device(), {"fake_tile", Config::parse(config)});
  };
  EXPECT_EQ(why("isa=3 mr=5 nr=24 pack=0"), "");
  EXPECT_EQ(why("isa=3 mr=6 nr=24 pack=0"), "mr * nr = 144 > 128 accumulators");
  EXPECT_EQ(why("isa=3 mr=1 nr=20 pack=0"),
            "nr=20 is not one of 8, 16, 32, 64; beside them multiples of 8 from 8 to 128");
  for (const char* value : {"0", "-8", "136", "9223372036854775800", "-9223372036854775808"})
    EXPECT_NE(why("isa=3 mr=1 nr=" + std::string(value) + " pack=0"), "") << value;
  EXPECT_NE(why("isa=3 mr=9 nr=8 pack=0"), "") << "mr takes no more than it offers";
}

TEST_F(SpaceRulesTest, FiltersByName) {
  const Space only = space(R"("include":"^fake_tile .*mr=[24] ","exclude":"pack=1$")");
  EXPECT_EQ(values(only, "mr"), (std::set<int64_t>{2, 4}));
  EXPECT_EQ(values(only, "pack"), (std::set<int64_t>{0}));
}

TEST_F(SpaceRulesTest, NothingLeftNamesTheFileAndItsKeys) {
  SearchOptions o = options(R"("include":"no_such","templates":{"fake_tile":{"mr":[1,2]}})");
  o.file = "s.json";
  try {
    Space(Gemm(), "fake", fake_device(), o).default_choice();
    FAIL();
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("where:  s.json, templates, include\n"), std::string::npos) << text;
    EXPECT_NE(text.find("48 configs are legal, and all are left out"), std::string::npos) << text;
    EXPECT_NE(text.find("remedy: allow more there"), std::string::npos) << text;
  }
}

/// Backtracking, as std::regex has it, takes longer than the age of the universe for each config.
TEST_F(SpaceRulesTest, NoPatternHangs) {
  EXPECT_NE(failure(R"("include":"(.*)*(.*)*(.*)*(.*)*(.*)*zzz")"), "");
  EXPECT_EQ(space(R"("exclude":"((a|m)*)*(a|m|r|=)*(.|.)*(.|.)*zzz")").size(), 132u);
}

TEST_F(SpaceRulesTest, ValuesThatCannotBeAreSaid) {
  const Space some = space(R"("templates":{"fake_tile":{"nr":[16,20],"pack":{"add":[7]}}})");
  EXPECT_EQ(values(some, "nr"), (std::set<int64_t>{16}));
  ASSERT_EQ(some.notes().size(), 2u);
  EXPECT_EQ(some.notes()[0],
            "fake_tile cannot have nr=20 here, but 8, 16, 32, 64; beside them multiples of 8 from 8 to 128");
  EXPECT_EQ(some.notes()[1], "fake_tile cannot have pack=7 here, but 0, 1");
  EXPECT_NE(failure(R"("templates":{"fake_tile":{"pack":[7]}})").find("cannot have pack=7"),
            std::string::npos);
}

TEST_F(SpaceRulesTest, UnknownNamesAreErrors) {
  const std::string tile = failure(R"("templates":{"fake_tle":{}})");
  EXPECT_NE(tile.find("unknown template 'fake_tle'"), std::string::npos) << tile;
  EXPECT_NE(tile.find("templates.fake_tle"), std::string::npos) << tile;
  const std::string parameter = failure(R"("templates":{"fake_tile":{"mrr":{"add":[4]}}})");
  EXPECT_NE(parameter.find("template fake_tile has no parameter 'mrr'"), std::string::npos) << parameter;
  EXPECT_NE(parameter.find("it has: isa, mr, nr, pack"), std::string::npos) << parameter;
  const std::string left_out = failure(R"("templates":{"cpu_tile":{}})");
  EXPECT_NE(left_out.find("fake_tile: the search options leave it out"), std::string::npos) << left_out;
}

TEST_F(SpaceRulesTest, ListOfConfigsIsTheSpace) {
  SearchOptions o;
  const Choice x = fake_choice(4, 1, 24, 0), y = fake_choice(4, 2, 8, 1), z = fake_choice(1, 1, 8, 0);
  o.configs = {x,
               y,
               z,
               fake_choice(4, 8, 64, 0),
               {"gone", {}},
               {"fake_tile", Config::parse("nr=8 pack=1 isa=4 mr=2")}};
  const Space list(Gemm(), "fake", fake_device(), o);
  EXPECT_EQ(list.size(), 3u);
  for (const Choice& choice : {x, y, z}) EXPECT_TRUE(list.rank(choice)) << choice.text();
  ASSERT_EQ(list.notes().size(), 1u);
  EXPECT_EQ(list.notes()[0], "2 of 6 configs of the saved space are not legal here");
  EXPECT_TRUE(list.neighbours(*list.rank(x)).empty());
  o.exclude = "isa=1";
  EXPECT_EQ(Space(Gemm(), "fake", fake_device(), o).size(), 2u) << "the filters count too";
}

TEST_F(SpaceRulesTest, TheLocksConfigIsInTheSpaceUnlessItIsLeftOut) {
  const Choice extended = fake_choice(4, 5, 24, 0);
  const size_t plain = space("\"seed\":1").size();
  EXPECT_EQ(space("\"seed\":1", extended).size(), plain + 1) << "it alone, not its values";
  EXPECT_TRUE(space("\"seed\":1", extended).rank(extended));
  EXPECT_EQ(space("\"seed\":1", fake_choice(4, 5, 16, 0)).size(), plain) << "it is there anyway";
  EXPECT_EQ(space("\"seed\":1", fake_choice(4, 6, 24, 0)).size(), plain) << "illegal";
  EXPECT_FALSE(space(R"("exclude":"nr=24")", extended).rank(extended));
  EXPECT_FALSE(space(R"("templates":{"fake_tile":{"nr":[8]}})", extended).rank(extended));
  EXPECT_TRUE(space(R"("templates":{"fake_tile":{"mr":[5]}})", extended).rank(extended));

  SearchInput in;
  in.arch = "fake", in.device = fake_device(), in.incumbent = extended;
  const Plan plan = next_plan(in);
  EXPECT_EQ(plan.slots[1].origin, "incumbent");
  EXPECT_EQ(plan.slots[1].choice, extended);
}

TEST_F(SpaceRulesTest, SearchKeepsToTheOptions) {
  SearchInput in;
  in.arch = "fake", in.device = fake_device(),
  in.options = options(R"("templates":{"fake_tile":{"mr":[3],"isa":[1]}})");
  const Plan plan = next_plan(in);
  EXPECT_EQ(plan.slots.size(), 3u * 2) << "nr 8, 16, 32 with and without packing";
  for (const PlanSlot& slot : plan.slots) EXPECT_EQ(slot.choice.config["mr"], 3);
}

TEST_F(SpaceRulesTest, TooLargeASpaceIsRefused) {
  const Gemm p = Gemm::parse(
      "gemm m=4096 n=4096 k=65536 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4");
  SearchOptions o;
  for (const char* name : {"kc", "mc", "nc", "prefetch"})
    for (int64_t v = 1; v <= 250; ++v) o.templates["cpu_tile"].added[name].push_back(v * 16);
  try {
    const Space space(p, "cpu", generic_device("cpu"), o);
    FAIL() << space.size() << " configs";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("too large to enumerate"), std::string::npos) << e.what();
  }
}

/// Values that a lock or a search file may hold: offered, beside the offered, or silly.
int64_t odd_value(const Parameter& p, std::mt19937_64& random) {
  constexpr int64_t kSilly[] = {0, -1, 1, 2, 3, 7, 1 << 20, INT64_MAX, INT64_MIN, int64_t(1) << 40};
  switch (random() % 8) {
  case 0:
    return kSilly[random() % std::size(kSilly)];
  case 1:
    return p.values[random() % p.values.size()] * int64_t(1 + random() % 3) + int64_t(random() % 3) - 1;
  case 2:
  case 3:
  case 4:
    if (p.more.most >= p.more.least) {
      const int64_t range = std::min<int64_t>(p.more.most, 4096) - p.more.least + 1;
      return p.more.least + int64_t(random() % uint64_t(range));
    }
    [[fallthrough]];
  default:
    return p.values[random() % p.values.size()];
  }
}

std::vector<RandomCandidate> samples_of_all_templates() {
  SampleSpec spec;
  spec.archs = {"sm_80", "sm_90a", "sm_120"};
  spec.each = 1;
  std::vector<RandomCandidate> samples = draw_samples(spec);
  for (const char* layout : {"nn", "nt", "tn", "tt"})
    for (const char* shape :
         {"m=1 n=4096 k=1024", "m=7 n=3 k=5", "m=512 n=512 k=512", "m=1000 n=1001 k=1003"}) {
      const Gemm p =
          Gemm::parse("gemm " + std::string(shape) + " batch=1 a=f32 b=f32 d=f32 acc=f32 layout=" + layout +
                      " epilogue=residual align=4");
      samples.push_back({p, "cpu", Space(p, "cpu", generic_device("cpu")).default_choice()});
    }
  return samples;
}

TEST_F(SpaceRulesTest, NoValueCrashesATemplate) {
  std::mt19937_64 random(11);
  size_t legal = 0, extended = 0;
  for (const RandomCandidate& sample : samples_of_all_templates()) {
    const Template& t = find_template(sample.choice.template_name);
    const Device device = generic_device(sample.arch);
    const std::vector<Parameter> parameters = t.parameters(sample.problem, device);
    for (int round = 0; round < 60; ++round) {
      Choice choice = sample.choice;
      // Few at a time: a config of nothing but odd values never passes the first constraint.
      for (auto& [name, value] : choice.config.values)
        for (const Parameter& p : parameters)
          if (p.name == name && random() % 4 == 0) value = odd_value(p, random);
      if (!why_illegal(sample.problem, sample.arch, device, choice).empty()) continue;
      ++legal;
      for (const Parameter& p : parameters) {
        const int64_t value = choice.config[p.name];
        const bool offered = std::count(p.values.begin(), p.values.end(), value) > 0;
        extended += !offered;
        EXPECT_TRUE(offered || p.more.holds(value)) << choice.text();
      }
      EXPECT_FALSE(std::isnan(t.cost(sample.problem, device, choice.config))) << choice.text();
      for (size_t assigned = 1; assigned <= parameters.size(); ++assigned)
        EXPECT_FALSE(t.dead_end(sample.problem, device, choice.config, assigned))
            << "a walk would cut off " << choice.text();
      const Gemm awkward = t.awkward(sample.problem, choice.config).gemm();
      EXPECT_GT(std::min({awkward.m, awkward.n, awkward.k}), 0) << choice.text();
    }
  }
  EXPECT_GT(legal, 1000u);
  EXPECT_GT(extended, 200u);
}

TEST(WorkspaceRule, KernelsThatAskForMoreAreNotInTheSpace) {
  const Gemm p = Gemm::parse(
      "gemm m=257 n=255 k=4097 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2");
  Device device;
  device.arch = "sm_90a", device.cores = 132, device.shared_block = 232448,
  device.shared_multiprocessor = 233472;
  device.memory_bandwidth = 4800000000000, device.clock_khz = 1980000, device.l2 = 62914560;
  SearchOptions options;
  options.include = "hopper_ws bm=64 bn=64 slices=1 .*group=1 |mma_sync bm=64 bn=64 bk=64 ";
  const Space all(p, "sm_90a", device, options);
  options.workspace = 0;
  const Space none(p, "sm_90a", device, options);
  ASSERT_GT(none.size(), 0u);
  EXPECT_LT(none.size(), all.size());
  bool packs = false, splits = false;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Choice choice = all.choice(rank);
    const int64_t bytes = find_template(choice.template_name).workspace(p, choice.config);
    packs |= bytes > 0 && choice.config["splits"] == 1,
        splits |= bytes > 0 && choice.template_name == "mma_sync";
    EXPECT_EQ(none.rank(choice).has_value(), bytes == 0) << choice.text();
  }
  EXPECT_TRUE(packs && splits);
}

} // namespace
} // namespace deepgen::space_rules_test
