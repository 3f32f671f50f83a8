// How a call is cut into tasks: every tile once, and no thread with much more than the others.
#include "runtime/cpu/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace deepgen::split_test {
namespace {

deepgen_kernel grid(int64_t m, int64_t n, int64_t b, int64_t grain_m, int64_t grain_n,
                    uint32_t cut = DEEPGEN_CUT_RULE) {
  deepgen_kernel k{};
  k.cut = cut;
  k.tiles_m = m, k.tiles_n = n, k.tiles_b = b, k.grain_m = grain_m, k.grain_n = grain_n;
  return k;
}

TEST(Split, CoversTheGridOnceAndUsesThreads) {
  for (int64_t m : {1, 2, 5, 37, 200})
    for (int64_t n : {1, 3, 23, 64})
      for (int64_t b : {1, 2, 40})
        for (int64_t grain : {1, 4, 100})
          for (int threads : {1, 2, 3, 8, 31, 64}) {
            const deepgen_kernel k = grid(m, n, b, grain, grain, uint32_t(threads + m + n) % 4);
            const Split split = split_tiles(k, threads);
            ASSERT_LE(split.count(), threads);
            std::vector<int> seen(size_t(m * n * b));
            for (int i = 0; i < split.count(); ++i) {
              const TileRange r = task_range(k, split, i);
              ASSERT_TRUE(r.m0 < r.m1 && r.n0 < r.n1 && r.b0 < r.b1) << "an empty task";
              for (int64_t z = r.b0; z < r.b1; ++z)
                for (int64_t y = r.m0; y < r.m1; ++y)
                  for (int64_t x = r.n0; x < r.n1; ++x) seen[size_t((z * m + y) * n + x)]++;
            }
            for (int count : seen)
              ASSERT_EQ(count, 1) << m << " " << n << " " << b << " " << grain << " " << threads;
            if (std::max(m, n) >= threads && k.cut == DEEPGEN_CUT_RULE) {
              ASSERT_GE(2 * split.count(), threads);
            }
          }
}

TEST(Split, KeepsTheGrainWhereItCan) {
  const deepgen_kernel k = grid(64, 10, 1, 8, 10);
  const Split split = split_tiles(k, 4);
  EXPECT_EQ(split.parts_m, 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(task_range(k, split, i).m0 % 8, 0);
  EXPECT_EQ(split_tiles(k, 16).parts_m, 16) << "8 blocks of the grain would leave 8 threads idle";
}

/// Tiles of the largest task, for which all threads wait.
int64_t largest_task(const deepgen_kernel& k, int threads) {
  const Split split = split_tiles(k, threads);
  int64_t most = 0;
  for (int i = 0; i < split.count(); ++i) {
    const TileRange r = task_range(k, split, i);
    most = std::max(most, (r.m1 - r.m0) * (r.n1 - r.n0) * (r.b1 - r.b0));
  }
  return most;
}

TEST(Split, SharesOutFairly) {
  EXPECT_EQ(largest_task(grid(64, 1, 1, 22, 1), 2), 32) << "and not 22 and 42";
  EXPECT_EQ(largest_task(grid(1, 64, 1, 1, 22), 2), 32);
  EXPECT_EQ(largest_task(grid(32, 1, 1, 14, 1), 2), 16);
  EXPECT_EQ(largest_task(grid(7, 5, 3, 7, 5), 2), 4 * 5 * 3)
      << "three batch entries are 2 and 1 for two threads";
  EXPECT_EQ(largest_task(grid(5, 2, 12, 5, 2), 16), 8)
      << "whole entries would leave four threads idle, and take 10";
}

/// With as many tiles as this, no cut may be far from what each thread would have of an even one.
TEST(Split, NoThreadHasMuchMoreThanItsShare) {
  double worst = 0;
  for (int64_t m : {19, 55, 64, 220})
    for (int64_t n : {24, 72, 96, 1572})
      for (int64_t grain : {1, 4, 8, 16, 22, 32, 64, 100})
        for (int threads : {2, 3, 4, 8, 16}) {
          const double share = double(m * n) / double(threads);
          const double over = double(largest_task(grid(m, n, 1, grain, grain), threads)) / share;
          EXPECT_LT(over, 1.13) << m << "x" << n << " grain " << grain << " threads " << threads;
          worst = std::max(worst, over);
        }
  RecordProperty("worst", std::to_string(worst));
}

/// A kernel that was tuned for one way of sharing out has it, and is covered as ever.
TEST(Split, ACutThatWasTunedIsTaken) {
  deepgen_kernel k = grid(40, 10, 1, 1, 1);
  EXPECT_EQ(split_tiles(k, 8).parts_m, 8) << "the rule: along the longer side";
  k.cut = DEEPGEN_CUT_COLUMNS;
  EXPECT_EQ(split_tiles(k, 8).parts_n, 8);
  EXPECT_EQ(split_tiles(k, 8).parts_m, 1);
  k.cut = DEEPGEN_CUT_BOTH;
  EXPECT_GT(split_tiles(k, 8).parts_n, 1);
  EXPECT_GT(split_tiles(k, 8).parts_m, 1);
  EXPECT_EQ(split_tiles(k, 8).count(), 8);
  EXPECT_EQ(split_tiles(k, 2).count(), 2) << "two threads are not cut along both sides: the rule";
  k.cut = DEEPGEN_CUT_ROWS;
  EXPECT_EQ(split_tiles(k, 8).parts_m, 8);
  deepgen_kernel row = grid(1, 64, 1, 1, 1);
  row.cut = DEEPGEN_CUT_ROWS;
  EXPECT_EQ(split_tiles(row, 8).parts_n, 8) << "one row of tiles: the rule";
  deepgen_kernel batch = grid(4, 4, 16, 1, 1);
  batch.cut = DEEPGEN_CUT_COLUMNS;
  EXPECT_EQ(split_tiles(batch, 8).parts_b, 8) << "a batch has the rule";
}

/// 30 tiles in units of 14 are 14 and 16, not 14 and 28: near enough to 15 each.
TEST(Split, TheLastUnitMayBeShort) {
  const deepgen_kernel k = grid(30, 1, 1, 14, 1);
  EXPECT_EQ(split_tiles(k, 2).step_m, 14);
  EXPECT_EQ(largest_task(k, 2), 16);
}

} // namespace
} // namespace deepgen::split_test
