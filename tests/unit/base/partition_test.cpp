// Which calls of a problem with one range or several each kernel takes.
#include "base/problem/partition.h"

#include "base/text/error.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace deepgen::partition_test {
namespace {

SizeSpan span_of(const Sizes& least, const Sizes& most) { return {least, most}; }

std::vector<SizeSpan> spans_of(const Partition& p) {
  std::vector<SizeSpan> spans;
  for (const PartitionBox& box : p.boxes) spans.push_back(box.span);
  return spans;
}

/// All boxes that hold the call; 0 is in every range, so it is none of these.
std::vector<size_t> takers(const Partition& p, const Sizes& at) {
  std::vector<size_t> kernels;
  for (const PartitionBox& box : p.boxes)
    if (box.span.holds(at)) kernels.push_back(box.kernel);
  return kernels;
}

TEST(Partition, OneRangeIsSharedInRuns) {
  const SizeSpan all = span_of({1, 64, 64, 1}, {4096, 64, 64, 1});
  std::vector<PartitionPoint> points;
  const std::vector<size_t> kernels = {0, 0, 1, 1, 1, 0, 2, 2};
  for (size_t i = 0; i < kernels.size(); ++i) points.push_back({{int64_t(1) << i, 64, 64, 1}, {kernels[i]}});
  const Partition p = partition_of(all, points, middle_of);
  ASSERT_EQ(p.boxes.size(), 4u);
  EXPECT_EQ(p.boxes[0].span.most.m, 2) << "the geometric mean of 2 and 4 begins the next";
  EXPECT_EQ(p.boxes[1].kernel, 1u);
  EXPECT_EQ(p.boxes[2].kernel, 0u);
  EXPECT_EQ(p.boxes[3].span.most.m, 4096);
  EXPECT_EQ(why_no_partition(all, spans_of(p)), "");
  ASSERT_EQ(p.borders.size(), 3u);
  for (const PartitionBorder& b : p.borders) EXPECT_EQ(b.size, Size::m);
}

TEST(Partition, TwoRangesAreCutAlongBoth) {
  const SizeSpan all = span_of({1, 64, 1, 1}, {8192, 64, 65536, 1});
  // Few rows; many rows with a short K, and with a long one.
  std::vector<PartitionPoint> points;
  for (int64_t m : {1, 16, 256, 4096})
    for (int64_t k : {16, 1024, 65536})
      points.push_back({{m, 64, k, 1}, {m <= 16 ? size_t(0) : k <= 16 ? size_t(1) : size_t(2)}});
  const Partition p = partition_of(all, points, middle_of);
  EXPECT_EQ(p.boxes.size(), 3u);
  EXPECT_EQ(takers(p, {3, 64, 60000, 1}), (std::vector<size_t>{0}));
  EXPECT_EQ(takers(p, {8192, 64, 1, 1}), (std::vector<size_t>{1}));
  EXPECT_EQ(takers(p, {8192, 64, 65536, 1}), (std::vector<size_t>{2}));
  EXPECT_EQ(why_no_partition(all, spans_of(p)), "");
}

TEST(Partition, PointsShareAKernelThatIsGoodAtAll) {
  const SizeSpan all = span_of({1, 64, 1, 1}, {64, 64, 64, 1});
  const Partition p = partition_of(
      all, {{{1, 64, 1, 1}, {0, 7}}, {{1, 64, 64, 1}, {1, 7}}, {{64, 64, 64, 1}, {7, 2}}}, middle_of);
  ASSERT_EQ(p.boxes.size(), 1u);
  EXPECT_EQ(p.boxes[0].kernel, 7u);
  EXPECT_EQ(p.boxes[0].span, all);
}

TEST(Partition, BordersAreWhereTheCallerSays) {
  const SizeSpan all = span_of({1, 64, 1, 1}, {64, 64, 64, 1});
  const std::vector<PartitionPoint> points = {{{1, 64, 64, 1}, {0}}, {{64, 64, 64, 1}, {1}}};
  for (int64_t wanted : {-5, 2, 30, 64, 1000}) {
    const Partition p = partition_of(all, points, [&](const PartitionBorder& b) {
      EXPECT_EQ(b, (PartitionBorder{Size::m, 1, 64, 0, 1, {64, 64, 64, 1}}));
      return wanted;
    });
    EXPECT_EQ(p.boxes[1].span.least.m, std::clamp<int64_t>(wanted, 2, 64));
  }
}

struct RandomPoints {
  SizeSpan all{{1, 1, 1, 1}, {1, 1, 1, 1}};
  std::vector<PartitionPoint> points;
  std::mt19937 engine;

  explicit RandomPoints(uint32_t seed) : engine(seed) {
    const size_t ranges = 1 + engine() % 4, count = 1 + engine() % (ranges > 2 ? 10 : 20);
    for (size_t s = 0; s < ranges; ++s) all.most[Size(s)] = 2 + int64_t(engine() % 5000);
    std::set<std::vector<int64_t>> known;
    for (size_t i = 0; i < count; ++i) {
      PartitionPoint point{any(), {}};
      if (!known.insert({point.at.m, point.at.n, point.at.k, point.at.batch}).second) continue;
      for (size_t k = 0; k < 5; ++k)
        if (engine() % 3 == 0) point.good.push_back(k);
      if (point.good.empty()) point.good.push_back(engine() % 5);
      points.push_back(point);
    }
  }
  Sizes any() {
    Sizes at;
    for (size_t s = 0; s < size_count; ++s)
      at[Size(s)] = all.least[Size(s)] + int64_t(engine() % uint64_t(all.most[Size(s)]));
    return at;
  }
};

TEST(Partition, EveryCallIsTakenOnce) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomPoints r(seed);
    const Partition p = partition_of(r.all, r.points, middle_of);
    EXPECT_EQ(why_no_partition(r.all, spans_of(p)), "");
    EXPECT_LE(p.boxes.size(), r.points.size());
    EXPECT_EQ(p.borders.size() + 1, p.boxes.size());
    for (int i = 0; i < 50; ++i) EXPECT_EQ(takers(p, r.any()).size(), 1u);
    for (const PartitionPoint& point : r.points) {
      const std::vector<size_t> kernels = takers(p, point.at);
      ASSERT_EQ(kernels.size(), 1u);
      EXPECT_NE(std::find(point.good.begin(), point.good.end(), kernels[0]), point.good.end());
    }
    for (const PartitionBorder& b : p.borders) {
      EXPECT_LT(b.low, b.high);
      EXPECT_NE(b.before, b.after);
    }
  }
}

TEST(Partition, IsStableUnderPermutation) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomPoints r(seed);
    const Partition before = partition_of(r.all, r.points, middle_of);
    std::shuffle(r.points.begin(), r.points.end(), r.engine);
    const Partition after = partition_of(r.all, r.points, middle_of);
    EXPECT_EQ(spans_of(before), spans_of(after));
    for (size_t i = 0; i < before.boxes.size() && i < after.boxes.size(); ++i)
      EXPECT_EQ(before.boxes[i].kernel, after.boxes[i].kernel);
  }
}

/// Beyond so many cuts they are chosen one after the other.
TEST(Partition, ManyPointsOfManyRangesAreCutInTime) {
  RandomPoints r(3);
  r.all.most = {5000, 5000, 5000, 5000}, r.points.clear();
  for (size_t i = 0; i < 40; ++i) r.points.push_back({r.any(), {i % 5}});
  const Partition p = partition_of(r.all, r.points, middle_of);
  EXPECT_EQ(why_no_partition(r.all, spans_of(p)), "");
  for (const PartitionPoint& point : r.points) EXPECT_EQ(takers(p, point.at), point.good);
}

TEST(Partition, SaysWhatIsNone) {
  const SizeSpan all = span_of({1, 64, 1, 1}, {100, 64, 100, 1});
  const SizeSpan low = span_of({1, 64, 1, 1}, {50, 64, 100, 1}),
                 high = span_of({51, 64, 1, 1}, {100, 64, 100, 1});
  const auto why = [&](const std::vector<SizeSpan>& boxes) { return why_no_partition(all, boxes); };
  EXPECT_EQ(why({low, high}), "");
  EXPECT_NE(why({high, low}).find("largest"), std::string::npos);
  EXPECT_NE(why({high}).find("leave sizes out"), std::string::npos);
  EXPECT_NE(why({}).find("leave sizes out"), std::string::npos);
  EXPECT_NE(why({low, low, high}).find("twice"), std::string::npos);
  SizeSpan other = high;
  other.most.k = 101;
  EXPECT_NE(why({low, other}).find("sizes k that are none"), std::string::npos) << why({low, other});
  other = high, other.least.k = 2;
  EXPECT_NE(why({low, other}).find("leave sizes out"), std::string::npos);
  std::swap(other.least.m, other.most.m);
  EXPECT_NE(why({low, other}), "");
}

TEST(Partition, RefusesWhatIsMalformed) {
  const SizeSpan all = span_of({1, 64, 1, 1}, {100, 64, 100, 1});
  EXPECT_THROW(partition_of(all, {}, middle_of), Error);
  EXPECT_THROW(partition_of(all, {{{1, 64, 1, 1}, {}}}, middle_of), Error);
  EXPECT_THROW(partition_of(all, {{{101, 64, 1, 1}, {0}}}, middle_of), Error);
  EXPECT_THROW(partition_of(all, {{{1, 64, 1, 1}, {0}}, {{1, 64, 1, 1}, {1}}}, middle_of), Error);
}

} // namespace
} // namespace deepgen::partition_test
