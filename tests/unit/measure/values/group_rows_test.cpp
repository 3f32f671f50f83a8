// What estimates expect of the rows of groups, beside tables as they are timed with.
#include "measure/values/groups.h"
#include "templates/core/group_rows.h"

#include <gtest/gtest.h>

namespace deepgen::group_rows_test {
namespace {

const Gemm kProblem = Gemm::parse(
    "gemm m=2048 n=256 k=256 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=8 epilogue=none align=2");

double tiles(double rows) { return std::ceil(rows / 128); }

TEST(GroupRows, AllRowsAreSomebodys) {
  auto itself = [](double rows) { return rows; };
  EXPECT_DOUBLE_EQ(over_groups(kProblem, false, itself), 2048);
  EXPECT_NEAR(over_groups(kProblem, true, itself), 2048, 4); // rounded, group by group
}

TEST(GroupRows, EvenGroupsFillTheirTiles) { EXPECT_DOUBLE_EQ(over_groups(kProblem, false, tiles), 16); }

TEST(GroupRows, SkewedGroupsHaveAsManyTilesAsTheTablesThatAreTimed) {
  constexpr uint64_t kTables = 200;
  double sum = 0;
  for (uint64_t seed = 0; seed < kTables; ++seed) {
    const std::vector<int32_t> offsets = group_offsets(kProblem, Sharing::skewed, seed);
    for (size_t g = 0; g + 1 < offsets.size(); ++g) sum += tiles(offsets[g + 1] - offsets[g]);
  }
  EXPECT_NEAR(over_groups(kProblem, true, tiles) / (sum / double(kTables)), 1, 0.03);
}

} // namespace
} // namespace deepgen::group_rows_test
