#include "generator/space/space.h"

#include "base/text/error.h"
#include "tests/unit/generator/fake_template.h"

#include <gtest/gtest.h>

namespace deepgen::space_test {
namespace {

class SpaceTest : public testing::Test {
protected:
  void SetUp() override { register_fake_template(); }
  Space space(int64_t isa = 4) { return Space(Gemm(), "fake", fake_device(isa)); }
};

TEST_F(SpaceTest, CountsLegalConfigs) {
  // Per isa and pack: nr 8 and 16 take mr 1..8, nr 32 takes 1..4, nr 64 takes 1..2.
  const Space full = space();
  ASSERT_EQ(full.families().size(), 1u);
  EXPECT_EQ(full.families()[0].raw, 3u * 8 * 4 * 2);
  EXPECT_EQ(full.size(), 3u * 2 * (8 + 8 + 4 + 2));
  EXPECT_EQ(full.families()[0].legal, full.size());
  EXPECT_EQ(space(3).size(), 2u * 2 * 22) << "a device of level 3 has two of the three levels";
}

TEST_F(SpaceTest, EveryConfigIsLegalAndRanksAreConsistent) {
  const Space full = space();
  const FakeTemplate t;
  for (size_t i = 0; i < full.size(); ++i) {
    const Choice choice = full.choice(i);
    EXPECT_EQ(t.why_illegal(Gemm(), fake_device(), choice.config), "");
    EXPECT_EQ(full.cost(i), t.cost(Gemm(), fake_device(), choice.config));
    EXPECT_EQ(full.rank(choice), i);
    if (i == 0) continue;
    EXPECT_LE(full.cost(i - 1), full.cost(i));
    if (full.cost(i - 1) == full.cost(i)) {
      EXPECT_LT(full.choice(i - 1).text(), choice.text()) << "ties go by text";
    }
  }
}

TEST_F(SpaceTest, DefaultIsTheCheapest) {
  EXPECT_EQ(space().default_choice(), fake_choice(4, 2, 64, 0));
  EXPECT_EQ(space(1).default_choice(), fake_choice(1, 2, 64, 0));
  EXPECT_THROW(space(0).default_choice(), Error);
}

TEST_F(SpaceTest, RankIgnoresTheOrderOfParameters) {
  const Space full = space();
  const Choice shuffled{"fake_tile", Config::parse("pack=1 nr=16 isa=3 mr=5")};
  ASSERT_TRUE(full.rank(shuffled));
  EXPECT_EQ(full.choice(*full.rank(shuffled)), fake_choice(3, 5, 16, 1));
  EXPECT_FALSE(full.rank(fake_choice(4, 8, 64, 0))) << "illegal";
  EXPECT_FALSE(full.rank({"fake_tile", Config::parse("isa=4 mr=1")})) << "incomplete";
  EXPECT_FALSE(full.rank({"other", Config::parse("isa=4")}));
}

TEST_F(SpaceTest, NeighboursMoveOneParameterOrTwo) {
  const Space full = space();
  const size_t origin = *full.rank(fake_choice(3, 4, 16, 0));
  std::vector<Choice> near;
  for (size_t rank : full.neighbours(origin)) {
    EXPECT_EQ(full.distance(origin, rank), 1u);
    near.push_back(full.choice(rank));
  }
  EXPECT_EQ(near.size(), 7u) << "isa, mr, nr both ways, pack one way";
  EXPECT_NE(std::find(near.begin(), near.end(), fake_choice(3, 4, 32, 0)), near.end());
  for (size_t rank : full.second_neighbours(origin)) EXPECT_EQ(full.distance(origin, rank), 2u);
  EXPECT_EQ(full.second_neighbours(origin).size(), 12u + 6u - 1u) << "all but mr=5 nr=32, which is illegal";
}

TEST_F(SpaceTest, PositionsNameAConfig) {
  const Space full = space();
  for (size_t i = 0; i < full.size(); ++i) EXPECT_EQ(full.find(full.family(i), full.positions(i)), i);
  EXPECT_FALSE(full.find(0, {2, 7, 3, 0})) << "mr=8 nr=64 is illegal";
}

TEST_F(SpaceTest, ExplainsIllegalConfigs) {
  auto why = [](const std::string& config) {
    return why_illegal(Gemm(), "fake", fake_device(3), {"fake_tile", Config::parse(config)});
  };
  EXPECT_EQ(why("isa=3 mr=8 nr=16 pack=0"), "");
  EXPECT_EQ(why("isa=3 mr=8 nr=64 pack=0"), "mr * nr = 512 > 128 accumulators");
  EXPECT_EQ(why("isa=3 mr=9 nr=16 pack=0"), "mr=9 is not one of 1, 2, 3, 4, 5, 6, 7, 8");
  EXPECT_EQ(why("isa=3 mr=8 nr=16"), "parameter 'pack' has no value");
  EXPECT_EQ(why("isa=3 mr=8 nr=16 pck=1"), "fake_tile has no parameter 'pck', but isa, mr, nr, pack");
  EXPECT_EQ(why("isa=3 mr=8 nr=16 pack=0 kc=1"), "fake_tile has no parameter 'kc', but isa, mr, nr, pack");
  EXPECT_EQ(why("isa=4 mr=8 nr=16 pack=0"), "isa=4 on a device of 3");
  EXPECT_NE(why_illegal(Gemm(), "cpu", fake_device(), fake_choice(4, 1, 8, 0)), "");
  EXPECT_THROW(why_illegal(Gemm(), "fake", fake_device(), {"no_such", {}}), Error);
}

TEST_F(SpaceTest, UnservedProblemListsTheReasons) {
  try {
    const Space none(Gemm(), "sm_0", fake_device());
    FAIL() << "an arch without templates: " << none.size();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("fake_tile: it is for arch fake"), std::string::npos) << e.what();
  }
}

} // namespace
} // namespace deepgen::space_test
