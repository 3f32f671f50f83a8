// Problems that differ in one size alone become one with a range, and that can be taken apart again.
#include "workload/ranges.h"

#include "base/problem/points.h"
#include "base/text/error.h"
#include "workload/import.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <sstream>

namespace deepgen::workload_ranges_test {
namespace {

std::string key(int64_t m, int64_t n, int64_t batch = 1, const std::string& type = "f32") {
  return "gemm m=" + std::to_string(m) + " n=" + std::to_string(n) + " k=64 batch=" + std::to_string(batch) +
         " a=" + type + " b=" + type + " d=" + type + " acc=" + type +
         " layout=nt epilogue=none align=" + (type == "f64" ? "8" : "4");
}

Importer importer_of(const std::string& text) {
  Importer importer;
  importer.read(*log_of(text, "log"), "log");
  return importer;
}

Workload workload_of(const std::vector<std::string>& lines) {
  std::string text = "problem,calls,seconds\n";
  for (const std::string& line : lines) text += line + "\n";
  return importer_of(text).workload();
}

const std::vector<std::string> kLines = {key(8, 24) + ",10,1e-6",         key(1, 24) + ",100,1e-7",
                                         key(40, 24) + ",5,4e-6",         key(40, 32) + ",1,1e-6",
                                         key(7, 24, 2) + ",1,1e-6",       key(7, 24, 3) + ",1,1e-6",
                                         key(8, 24, 1, "f64") + ",1,1e-6"};

const WorkloadProblem& ranged(const Workload& w) {
  for (const WorkloadProblem& p : w.problems)
    if (!p.points.empty()) return p;
  throw Error("no problem has points", "test");
}

TEST(WorkloadRanges, MergeWhatDiffersInOneSize) {
  Workload w = workload_of(kLines);
  const double seconds = w.seconds();
  EXPECT_EQ(merge_ranges(w, Size::m), 3u);
  ASSERT_EQ(w.problems.size(), 5u);
  const WorkloadProblem& p = ranged(w);
  EXPECT_EQ(p.problem.key(), key(40, 24).replace(7, 2, "1..40"));
  EXPECT_EQ(p.name, "m1to40_n24_k64_f32_nt");
  EXPECT_EQ(p.calls, 115);
  EXPECT_NEAR(p.weight(), 10e-6 + 10e-6 + 20e-6, 1e-10);
  EXPECT_NEAR(w.seconds(), seconds, 1e-10) << "no time is lost";
  EXPECT_EQ(sizes_text(p), "1 8 40");
  EXPECT_EQ(tune_texts(p).at, "1 8 40");
  EXPECT_EQ(tune_texts(p).weights, "0.869565 0.086957 0.043478") << "calls, not time: a point has its own";
  EXPECT_EQ(merge_ranges(w, Size::batch), 2u) << "one with a range already stays as it is";
  EXPECT_EQ(w.problems.size(), 4u);
}

TEST(WorkloadRanges, ManySizesHaveFewPoints) {
  std::vector<std::string> lines;
  for (int m = 1; m <= 200; ++m)
    lines.push_back(key(m, 24) + "," + std::to_string(m == 77 || m == 78 ? 1000 : 1) + ",1e-6");
  Workload w = workload_of(lines);
  merge_ranges(w, Size::m);
  ASSERT_EQ(w.problems.size(), 1u);
  const auto words = [](const std::string& text) {
    std::istringstream stream(text);
    return std::vector<std::string>{std::istream_iterator<std::string>(stream), {}};
  };
  const auto at = words(tune_texts(w.problems[0]).at), weights = words(tune_texts(w.problems[0]).weights);
  EXPECT_EQ(at.size(), 10u);
  EXPECT_EQ(weights.size(), 10u);
  EXPECT_EQ(at.front(), "1");
  EXPECT_EQ(at.back(), "200");
  EXPECT_EQ(std::count(at.begin(), at.end(), "77") + std::count(at.begin(), at.end(), "78"), 2);
  double sum = 0;
  for (const auto& weight : weights) sum += std::stod(weight);
  EXPECT_NEAR(sum, 1, 1e-4) << "the calls of the others count for the nearest";
  // What CMake passes on is what the tool takes.
  std::vector<double> numbers;
  for (const auto& weight : weights) numbers.push_back(std::stod(weight));
  EXPECT_EQ(tune_points(w.problems[0].problem.gemm(), at, numbers, 6, "test").at.size(), 10u);
}

TEST(WorkloadRanges, AreWrittenAndTakenApart) {
  Workload w = workload_of(kLines);
  const std::string before = w.serialize();
  merge_ranges(w, Size::m);
  const std::string text = w.serialize();
  EXPECT_EQ(Workload::parse(text, "again").serialize(), text);
  EXPECT_NE(text.find("\"sizes\":\"1 8 40\",\"tune_at\":\"1 8 40\",\"weights\":\""), text.npos);
  Importer again = importer_of(text);
  Workload apart = again.workload();
  EXPECT_EQ(apart.problems.size(), 7u);
  EXPECT_NEAR(apart.seconds(), w.seconds(), 1e-10);
  EXPECT_EQ(merge_ranges(apart, Size::m), 3u);
  EXPECT_EQ(apart.problems.size(), w.problems.size());
}

TEST(WorkloadRanges, PointsOutsideAreRefused) {
  Workload w = workload_of(kLines);
  merge_ranges(w, Size::m);
  const std::string text = w.serialize();
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string odd = text;
    const size_t at = odd.find(from);
    EXPECT_NE(at, odd.npos) << from;
    odd.replace(at, from.size(), to);
    try {
      Workload::parse(odd, "odd");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refused("[[1,100,", "[[41,100,").find("no size of the range"), std::string::npos);
  EXPECT_NE(refused("[[1,100,", "[[8,100,").find("each once, ascending"), std::string::npos);
  EXPECT_NE(refused("[[1,100,", "[[1,0,").find("out of range"), std::string::npos);
  EXPECT_NE(refused("[[1,100,", "[[1,\"x\",").find("no point"), std::string::npos);
  EXPECT_NE(refused("m=1..40", "m=40").find("not one range"), std::string::npos);
}

} // namespace
} // namespace deepgen::workload_ranges_test
