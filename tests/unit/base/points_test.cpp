// The sizes at which kernels of a problem with ranges are compared.
#include "base/problem/points.h"

#include "base/search/plan.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace deepgen::points_test {
namespace {

Gemm tokens(int64_t least, int64_t most) {
  Gemm p;
  p.m = most, p.n = 64, p.k = 64, p.least[0] = least;
  return p;
}

std::vector<int64_t> rows(const std::vector<Sizes>& points) {
  std::vector<int64_t> out;
  for (const Sizes& at : points) out.push_back(at.m);
  return out;
}

using List = std::vector<int64_t>;

TEST(Points, BothEndsPowersAndSizesThatFlatterNoTile) {
  EXPECT_EQ(rows(default_points(tokens(1, 4096))), (List{1, 4, 16, 64, 151, 256, 603, 1024, 2412, 4096}));
  EXPECT_EQ(rows(default_points(tokens(1, 8192))), (List{1, 4, 16, 64, 151, 256, 603, 1024, 3702, 8192}));
  EXPECT_EQ(rows(default_points(tokens(0, 128))), (List{1, 4, 16, 64, 98, 128}));
  EXPECT_EQ(rows(default_points(tokens(1, 2))), (List{1, 2}));
  EXPECT_EQ(rows(default_points(tokens(100, 120))), (List{100, 120})) << "near to each other";
}

TEST(Points, AreFewAscendingAndOfTheRange) {
  for (int64_t least : {0, 1, 3, 60, 1000})
    for (int64_t most : {1001, 5000, 70000, 1 << 30})
      for (size_t count : {2, 3, 5, 10}) {
        const std::vector<Sizes> points = default_points(tokens(least, most), count);
        EXPECT_LE(points.size(), count);
        EXPECT_EQ(points.front().m, std::max<int64_t>(least, 1));
        EXPECT_EQ(points.back().m, most);
        EXPECT_TRUE(std::is_sorted(points.begin(), points.end(),
                                   [](const Sizes& x, const Sizes& y) { return x.m < y.m; }));
      }
}

TEST(Points, BatchEntriesHaveNoTiles) {
  Gemm p;
  p.batch = 4096, p.least[3] = 1;
  for (const Sizes& at : default_points(p)) EXPECT_EQ(at.batch & (at.batch - 1), 0) << at.batch;
}

TEST(Points, OfFinalsAreBetweenToo) {
  const Gemm p = tokens(1, 4096);
  const TunePoints points = default_tune_points(p), all = final_points(points);
  EXPECT_EQ(rows(all.at), (List{1,   2,   4,   8,   16,  18,  32,   64,   70,   98,   151,  166,  197,
                                256, 282, 393, 603, 663, 786, 1024, 1126, 1572, 2412, 2653, 3143, 4096}));
  EXPECT_EQ(all.weights.size(), all.at.size());
  EXPECT_EQ(final_points(default_tune_points(tokens(1, 2))).at.size(), 2u) << "nothing between 1 and 2";
}

TEST(Points, DenseOnesAreNearEachOther) {
  const TunePoints points = default_tune_points(tokens(1, 8192)), dense = dense_points(points),
                   all = final_points(points, true);
  EXPECT_EQ(rows(dense.at), (List{1,   4,   16,  23,   32,   45,   64,   98,   151,  197, 256,
                                  393, 603, 786, 1024, 1412, 1947, 2685, 3702, 5507, 8192}));
  EXPECT_EQ(dense.weights.size(), dense.at.size());
  for (size_t i = 1; i < dense.at.size(); ++i)
    EXPECT_TRUE(dense.at[i - 1].m < 16 || double(dense.at[i].m) <= 1.61 * double(dense.at[i - 1].m))
        << dense.at[i].m;
  for (const TunePoints& some : {points, dense, final_points(points)})
    for (const Sizes& at : some.at)
      EXPECT_EQ(std::count(all.at.begin(), all.at.end(), at), 1) << at.m << " is of the finals, too";
  EXPECT_EQ(ascending(all.at), all.at);
  EXPECT_EQ(rows(dense_points(default_tune_points(tokens(1, 8))).at), (List{1, 4, 8}));
}

TEST(Points, BetweenWeighAsMuchAsTheirNeighbours) {
  const Gemm p = tokens(1, 4096);
  const TunePoints all = final_points(tune_points(p, {"16", "64", "256"}, {1, 3, 0}, 6, "x"));
  EXPECT_EQ(rows(all.at), (List{16, 18, 32, 64, 70, 128, 256}));
  EXPECT_EQ(all.weights, (std::vector<double>{1, 2, 2, 3, 1.5, 1.5, 0}));
}

TEST(Points, OfTheUserAreReadInAnyOrder) {
  const Gemm p = tokens(1, 4096);
  const TunePoints points = tune_points(p, {"64", "1", "300"}, {5, 1, 0.5}, 3, "x");
  EXPECT_EQ(rows(points.at), (List{1, 64, 300}));
  EXPECT_EQ(points.weights, (std::vector<double>{1, 5, 0.5}));
  EXPECT_EQ(points.kernels, 3u);
  EXPECT_EQ(tune_points(p, {}, {}, TunePoints().kernels, "x"), default_tune_points(p));
  Gemm two = p;
  two.k = 512, two.least[2] = 16;
  EXPECT_EQ(tune_points(two, {"16x128", "1x16"}, {}, 6, "x").at,
            (std::vector<Sizes>{{1, 64, 16, 1}, {16, 64, 128, 1}}));
  EXPECT_EQ(point_text(two, {16, 64, 128, 1}), "16x128");
  EXPECT_EQ(point_text(p, {16, 64, 64, 1}), "16");
}

TEST(Points, OfTheUserAreChecked) {
  const Gemm p = tokens(2, 4096);
  const auto refused = [&](const std::vector<std::string>& at, const std::vector<double>& weights,
                           size_t kernels = 6) {
    try {
      tune_points(p, at, weights, kernels, "problem.json");
    } catch (const Error& e) {
      return std::string(e.what()).find("problem.json") != std::string::npos;
    }
    return false;
  };
  EXPECT_FALSE(refused({"2", "4096"}, {1, 2}));
  for (const char* word : {"1", "4097", "0", "", "-3", "08", "3x4", "x", "1e3", "99999999999"})
    EXPECT_TRUE(refused({word}, {})) << word;
  EXPECT_TRUE(refused({"8", "8"}, {}));
  EXPECT_TRUE(refused({"8"}, {1, 2}));
  EXPECT_TRUE(refused({"8"}, {0}));
  EXPECT_TRUE(refused({"8"}, {-1}));
  EXPECT_TRUE(refused({}, {1}));
  EXPECT_TRUE(refused({"8"}, {}, 0));
  EXPECT_TRUE(refused({"8"}, {}, kMostKernels + 1));
  EXPECT_TRUE(refused(std::vector<std::string>(kMostPoints + 1, "8"), {}));
  EXPECT_THROW(check_points(Gemm(), default_tune_points(p), "x"), Error);
}

TEST(Points, OfAnAttentionAreTheCallsOfItsKey) {
  const Problem p = Problem::parse(
      "attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=f32 kv=f32 out=f32 mask=none queries=512 "
      "keys=4096 options=none at=1x1x4096+1x256x512+8x1x4096");
  const std::vector<Sizes> calls = {{1, 4096, 1, 1}, {1, 4096, 1, 8}, {256, 512, 1, 1}};
  EXPECT_EQ(default_tune_points(p).at, calls);
  const TunePoints points = tune_points(p, {"8x1x4096", "1x256x512", "1x1x4096"}, {3, 0.5, 1}, 2, "x");
  EXPECT_EQ(points.at, calls);
  EXPECT_EQ(points.weights, (std::vector<double>{1, 3, 0.5}));
  EXPECT_EQ(final_points(points).at, (std::vector<Sizes>{calls[0], {1, 4096, 1, 3}, calls[1], calls[2]}))
      << "between those that differ in the batch alone";
  EXPECT_EQ(point_text(p, calls[1]), "8x1x4096");
  EXPECT_EQ(sizes_text(p, calls[1]), "batch=8 queries=1 keys=4096");
  EXPECT_EQ(span_text(p, all_calls(p)), "batch 1..65536, queries 1..512, keys 1..4096");
  EXPECT_FALSE(wants_dense_points(p, "sm_90a", points));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"8x1x4096", "1x256x512"},
                                                {"8x1x4096", "1x256x512", "1x1x4095"},
                                                {"1x256x512", "1x1x4096", "8x1"},
                                                {"1x256x512", "1x1x4096", "8x1x4097"}})
    EXPECT_THROW(tune_points(p, words, {}, 2, "x"), Error) << words.back();
}

TEST(Points, OfAPlanRoundTrip) {
  Plan plan;
  plan.problem = tokens(1, 4096);
  plan.points = tune_points(tokens(1, 4096), {"64", "300"}, {0.25, 3}, 2, "x");
  EXPECT_EQ(Plan::parse(plan.serialize(), "x").points, plan.points);
  plan.points = {};
  EXPECT_EQ(plan.serialize().find("tune_at"), std::string::npos);
  EXPECT_EQ(Plan::parse(plan.serialize(), "x").points, default_tune_points(tokens(1, 4096)));
  Json json = {{"tune_at", tune_points_json(tune_points(tokens(1, 4096), {"64"}, {}, 2, "x"))}};
  EXPECT_THROW(get_tune_points(json, "tune_at", tokens(65, 4096), "x"), Error);
  json["tune_at"]["weights"] = {1, 2};
  EXPECT_THROW(get_tune_points(json, "tune_at", tokens(1, 4096), "x"), Error);
  json["tune_at"] = 7;
  EXPECT_THROW(get_tune_points(json, "tune_at", tokens(1, 4096), "x"), Error);
}

} // namespace
} // namespace deepgen::points_test
