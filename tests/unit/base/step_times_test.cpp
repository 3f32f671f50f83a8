// Times of kernels between measured sizes, from the grids of their calls.
#include "base/ranges/step_table.h"
#include "base/ranges/step_times.h"
#include "base/text/error.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

namespace deepgen::step_times_test {
namespace {

constexpr Sizes kBeside{1, 4096, 4096, 1};

/// Tiles of so many rows, `columns` blocks for each row of tiles.
std::vector<CallGrid> tiled(int64_t rows, int64_t columns, int64_t resident = 132) {
  CallGrid grid;
  grid.most = {(8192 + rows - 1) / rows * columns, 1, 1};
  grid.rules[0] = {columns, {rows, 0, 0, 0}};
  grid.resident = resident;
  return {grid};
}

double waves(const std::vector<CallGrid>& grids, int64_t m) { return grids[0].waves({m, 4096, 4096, 1}); }

StepTimes timed(const std::vector<CallGrid>& grids, const std::function<double(int64_t)>& seconds,
                const std::vector<int64_t>& at = {64, 98, 151, 197, 256, 393, 603, 786, 1024, 1412, 1947}) {
  std::vector<StepTimes::Measured> measured;
  for (int64_t m : at) measured.push_back({m, seconds(m)});
  return {grids, kBeside, Size::m, measured};
}

TEST(CallGrid, CountsBlocksWavesAndSteps) {
  const std::vector<CallGrid> grids = tiled(128, 32);
  EXPECT_EQ(grids[0].blocks({129, 1, 1, 1}), 64);
  EXPECT_EQ(grids[0].waves({512, 1, 1, 1}), 1);
  EXPECT_EQ(grids[0].waves({513, 1, 1, 1}), 2);
  using List = std::vector<int64_t>;
  EXPECT_EQ(grid_steps(grids, kBeside, Size::m, 1024, 1400, 64), (List{1025, 1153, 1281}));
  EXPECT_EQ(grid_steps(grids, kBeside, Size::m, 1025, 1153, 64), (List{1153}));
  EXPECT_TRUE(grid_steps(grids, kBeside, Size::m, 1025, 1152, 64).empty());
  EXPECT_TRUE(grid_steps(tiled(1, 32), kBeside, Size::m, 1, 4096, 64).empty()) << "almost everywhere";
  EXPECT_TRUE(grid_steps(grids, kBeside, Size::n, 1, 4096, 64).empty());
  EXPECT_TRUE(grid_steps({CallGrid()}, kBeside, Size::m, 1, 4096, 64).empty()) << "a fixed grid";
  EXPECT_TRUE(grid_steps(grids, kBeside, Size::m, 1, int64_t(1) << 31, 64).empty());
}

TEST(CallGrid, OfAKernelOnADevice) {
  Kernel k;
  Launch l;
  l.grid = {64, 1, 1}, l.block = {384, 1, 1}, l.shared = 200000, l.registers = 168;
  l.grid_rules[0] = {1, {128, 0, 0, 0}};
  k.launches = {l};
  Device device = generic_gpu("sm_90a");
  std::vector<CallGrid> grids = grids_of(k, device);
  ASSERT_EQ(grids.size(), 1u);
  EXPECT_EQ(grids[0].resident, device.cores) << "one by shared memory";
  EXPECT_EQ(grids[0].rules, l.grid_rules);
  k.launches[0].shared = 1000, k.launches[0].block = {128, 1, 1};
  EXPECT_EQ(grids_of(k, device)[0].resident, 3 * device.cores) << "three by registers";
  k.launches[0].registers = 0;
  EXPECT_EQ(grids_of(k, device)[0].resident, 0) << "nobody has assembled it";
  EXPECT_TRUE(grids_of(k, Device()).empty()) << "a CPU";
}

TEST(CallGrid, RoundTripsAndRefusesWhatIsMalformed) {
  const std::vector<CallGrid> grids = tiled(128, 32);
  EXPECT_EQ(grids_from(to_json(grids), "x"), grids);
  const Json good = to_json(grids);
  const auto refused = [](Json bad) { EXPECT_THROW(grids_from(bad, "x"), Error) << bad; };
  refused("text"), refused(Json::object()), refused({1});
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{
           {"most", {1, 1}},
           {"most", {0, 1, 1}},
           {"most", {-1, 1, 1}},
           {"most", {int64_t(1) << 60, 1, 1}},
           {"rules", {{1, 2, 3, 4, 5}}},
           {"rules", {{1, -2, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}},
           {"rules", "x"},
           {"resident", 0},
           {"resident", "132"}}) {
    Json bad = good;
    bad[0][key] = value;
    refused(bad);
  }
  Json bad = good;
  bad[0].erase("rules");
  refused(bad);
  bad = Json::array();
  for (int i = 0; i < 17; ++i) bad.push_back(good[0]);
  refused(bad);
}

TEST(CallGrid, HostileNumbersDoNotOverflow) {
  CallGrid grid;
  const int64_t large = int64_t(1) << 50;
  grid.most = {large, large, large};
  for (SizeRule& rule : grid.rules) rule = {large, {1, 1, 1, 1}};
  const Sizes most{int64_t(1) << 31, int64_t(1) << 31, int64_t(1) << 31, int64_t(1) << 31};
  EXPECT_TRUE(std::isfinite(grid.blocks(most)));
}

/// Each wave takes as long: exact everywhere between the ends.
TEST(StepTimes, WavesAreToldFromTheirNeighbours) {
  for (const auto& grids : {tiled(128, 32), tiled(200, 32), tiled(64, 64), tiled(256, 16), tiled(16, 32)}) {
    const auto seconds = [&](int64_t m) { return 3e-6 + 2e-5 * waves(grids, m); };
    const StepTimes times = timed(grids, seconds);
    for (int64_t m = 64; m <= 1947; ++m) {
      ASSERT_TRUE(times.time_at(m));
      EXPECT_NEAR(times.time_at(m)->seconds / seconds(m), 1, 1e-9) << m;
    }
  }
}

/// What shares the sum over K among all multiprocessors takes as long as it has blocks.
TEST(StepTimes, AKernelWhoseBlocksCountIsFoundOut) {
  const std::vector<CallGrid> grids = tiled(64, 32);
  const auto seconds = [&](int64_t m) { return 1e-5 + 1e-7 * grids[0].blocks({m, 1, 1, 1}); };
  const StepTimes times = timed(grids, seconds);
  for (int64_t m = 64; m <= 1947; ++m) EXPECT_NEAR(times.time_at(m)->seconds / seconds(m), 1, 1e-9) << m;
}

TEST(StepTimes, MeasuredTimesCount) {
  const StepTimes times = timed(tiled(128, 32), [](int64_t m) { return m == 197 ? 7e-6 : 1e-5; });
  EXPECT_EQ(times.time_at(197)->seconds, 7e-6);
  EXPECT_EQ(times.time_at(197)->error, 0);
  EXPECT_TRUE(times.time_at(197)->measured);
  EXPECT_FALSE(times.time_at(198)->measured);
  EXPECT_GT(times.time_at(230)->error, 0) << "of as many blocks 151, 197 and 256 disagree";
}

TEST(StepTimes, NothingIsSaidFarFromAnyMeasurement) {
  const StepTimes times = timed(tiled(128, 32), [](int64_t) { return 1e-5; }, {64, 4000});
  EXPECT_FALSE(times.time_at(1000)) << "neighbours more than twice apart";
  EXPECT_TRUE(times.time_at(100)) << "of as many blocks as 64";
  EXPECT_TRUE(times.time_at(3990));
  EXPECT_FALSE(times.time_at(8000)) << "none above";
}

TEST(StepTimes, AKernelThatFollowsNothingIsDoubtful) {
  const std::vector<CallGrid> grids = tiled(128, 32);
  const auto wild = [](int64_t m) { return m % 2 ? 1e-5 : 3e-5; };
  const auto tame = [&](int64_t m) { return 1e-5 * waves(grids, m); };
  EXPECT_GT(timed(grids, wild).time_at(700)->error, 5 * timed(grids, tame).time_at(700)->error + 0.1);
}

TEST(StepTable, HasTheStepsOfThoseNearTheBest) {
  const auto flat = [](double seconds) { return [seconds](int64_t) { return seconds; }; };
  const std::vector<int64_t> points = {512, 603, 786};
  const auto sizes = [&](double second) {
    return step_table(
               {timed(tiled(128, 32), flat(1e-5), points), timed(tiled(200, 32), flat(second), points)},
               points)
        .sizes;
  };
  EXPECT_EQ(sizes(1.1e-5), (std::vector<int64_t>{512, 513, 601, 603, 641, 769, 786}));
  EXPECT_EQ(sizes(3e-5), (std::vector<int64_t>{512, 513, 603, 641, 769, 786}));
}

} // namespace
} // namespace deepgen::step_times_test
