// The templates' estimates beside times that were measured (benchmarks/gpu/model).
#include "base/files/files.h"
#include "base/json/json.h"
#include "generator/replay/recorded_space.h"
#include "templates/core/sizes.h"
#include "templates/core/template.h"
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "tests/paths.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <sstream>
#include <vector>

namespace deepgen::model_test {
namespace {

struct Timed {
  double estimate, seconds;
};

/// So few rows of a part may lie beyond the matrix that edges change the time by less than 2 %, on an H200
/// (benchmarks/gpu/edges.md).
int64_t few_beyond(int64_t part_rows) { return part_rows > 64 ? 16 : part_rows > 40 ? 8 : part_rows / 2; }

/// Whether the estimate is of the kernel that was timed. Since then, tiles of A that reach beyond its last
/// row have edges (hopper_ws_edge.h), and what they took without is no longer expected.
bool is_as_timed(const Template& from, const Problem& problem, const Config& config) {
  if (from.name() != "hopper_ws") return true;
  const Gemm p = problem.as<Gemm>().as_batch();
  const HopperTiling t(p, config);
  const HopperTile& tile = t.left.is_a() ? t.left : t.right;
  const int64_t part = tile.part_rows();
  return tile.edge_rows == 0 || (!tile.edge_skips && round_up(p.m, part) - p.m <= few_beyond(part));
}

/// Configs of records that are left out for it.
struct LeftOut {
  size_t count = 0;
  ~LeftOut() {
    if (count) std::printf("%zu configs are left out: their kernels have edges now\n", count);
  }
};

using TimedByProblem = std::map<std::string, std::vector<Timed>>;

Device device_of(const std::string& name) {
  std::istringstream lines(read_file(paths::in_source("benchmarks/gpu/model/" + name)));
  std::string line;
  std::getline(lines, line);
  return Device::from_json(Json::parse(line).at("device"));
}

/// `of`: a template; empty: all.
TimedByProblem read_timed(const std::string& name, const std::string& of = "") {
  std::istringstream lines(read_file(paths::in_source("benchmarks/gpu/model/" + name)));
  std::string line;
  std::getline(lines, line); // the device's
  const Device device = device_of(name);
  TimedByProblem all;
  LeftOut left_out;
  while (std::getline(lines, line)) {
    const Json json = Json::parse(line);
    if (!of.empty() && json.at("template").get<std::string>() != of) continue;
    const Problem problem = Problem::parse(json.at("problem").get<std::string>());
    const Template& from = find_template(json.at("template").get<std::string>());
    const Config config = Config::parse(json.at("config").get<std::string>());
    if (!from.why_illegal(problem, device, config).empty()) continue; // the space may have become smaller
    if (!is_as_timed(from, problem, config)) {
      ++left_out.count;
      continue;
    }
    all[problem.key()].push_back({from.cost(problem, device, config), json.at("seconds").get<double>()});
  }
  return all;
}

std::vector<double> ranks(const std::vector<Timed>& timed, double Timed::* of) {
  std::vector<size_t> order(timed.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return timed[a].*of < timed[b].*of; });
  std::vector<double> out(timed.size());
  for (size_t i = 0; i < order.size(); ++i) out[order[i]] = double(i);
  return out;
}

/// Spearman's, of few ties.
double rank_correlation(const std::vector<Timed>& timed) {
  const std::vector<double> a = ranks(timed, &Timed::estimate), b = ranks(timed, &Timed::seconds);
  const double n = double(timed.size());
  double squares = 0;
  for (size_t i = 0; i < timed.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return 1 - 6 * squares / (n * (n * n - 1));
}

/// Time of the fastest / that of the fastest among the first `count` by estimate.
double found(std::vector<Timed> timed, size_t count) {
  const auto faster = [](const Timed& a, const Timed& b) { return a.seconds < b.seconds; };
  const double best = std::min_element(timed.begin(), timed.end(), faster)->seconds;
  std::stable_sort(timed.begin(), timed.end(),
                   [](const Timed& a, const Timed& b) { return a.estimate < b.estimate; });
  const auto end = timed.begin() + std::ptrdiff_t(std::min(count, timed.size()));
  return best / std::min_element(timed.begin(), end, faster)->seconds;
}

struct Quality {
  size_t problems = 0, configs = 0;
  /// Means over the problems; level: of the median of |log(time / estimate)|.
  double correlation = 0, first = 0, twelve = 0, level = 0;
  double least_correlation = 1, least_twelve = 1;
};

Quality judge(const TimedByProblem& all) {
  Quality q;
  q.problems = all.size();
  for (const auto& [key, timed] : all) {
    const double share = 1.0 / double(all.size()), r = rank_correlation(timed), twelve = found(timed, 12);
    std::vector<double> logs;
    for (const Timed& t : timed) logs.push_back(std::log(t.seconds / t.estimate));
    std::nth_element(logs.begin(), logs.begin() + std::ptrdiff_t(logs.size() / 2), logs.end());
    q.configs += timed.size();
    q.correlation += r * share, q.first += found(timed, 1) * share, q.twelve += twelve * share;
    q.level += std::fabs(logs[logs.size() / 2]) * share;
    q.least_correlation = std::min(q.least_correlation, r), q.least_twelve = std::min(q.least_twelve, twelve);
  }
  for (const auto& [what, value] : {std::pair("rank_correlation", q.correlation),
                                    {"first_pick", q.first},
                                    {"best_of_twelve", q.twelve},
                                    {"level", q.level},
                                    {"least_correlation", q.least_correlation},
                                    {"least_of_twelve", q.least_twelve}})
    ::testing::Test::RecordProperty(what, std::to_string(value));
  return q;
}

void tell(const std::string& of, const Quality& q) {
  std::printf("%s: %zu configs of %zu problems: correlation %.2f, first pick %.3f, of 12 %.3f, level %.3f\n",
              of.c_str(), q.configs, q.problems, q.correlation, q.first, q.twelve, q.level);
}

Quality judge(const std::string& name) {
  const Quality q = judge(read_timed(name));
  tell(name, q);
  return q;
}

/// Without the 136 configs that have edges now. Revision 4 left out fewer: the bars of the correlation and
/// the level were 0.74 and 0.05 then. The level's was 0.055 until mma_sync's estimate counted what is in
/// flight, by which the order is better and the level by 0.004 worse.
TEST(ModelTest, EstimatesRankWhatWasMeasured) {
  const Quality q = judge("h200.jsonl");
  EXPECT_EQ(q.problems, 21u);
  EXPECT_GT(q.configs, 780u);
  EXPECT_GT(q.correlation, 0.68);
  EXPECT_GT(q.first, 0.94);
  EXPECT_GT(q.twelve, 0.99);
  EXPECT_LT(q.level, 0.06);
  EXPECT_GT(q.least_correlation, -0.1); // of M=1, where most configs are within a fifth of each other
  EXPECT_GT(q.least_twelve, 0.9);
}

/// Clusters that share K, and early requests, of smaller problems.
TEST(ModelTest, EstimatesRankClustersThatWereMeasured) {
  const Quality q = judge("h200_clusters.jsonl");
  EXPECT_EQ(q.problems, 14u);
  EXPECT_GT(q.configs, 500u);
  EXPECT_GT(q.correlation, 0.6);
  EXPECT_GT(q.first, 0.9);
  EXPECT_GT(q.twelve, 0.97);
  EXPECT_LT(q.level, 0.06);
}

TEST(ModelTest, EstimatesRankStreamKThatWasMeasured) {
  const Quality q = judge("h200_stream_k.jsonl");
  EXPECT_EQ(q.problems, 7u);
  EXPECT_GT(q.configs, 50u);
  EXPECT_GT(q.correlation, 0.8);
  EXPECT_GT(q.first, 0.97);
  EXPECT_LT(q.level, 0.05);
}

/// Products of 4 to 42 waves, with and without stream_k.
TEST(ModelTest, EstimatesRankManyWavesThatWereMeasured) {
  const Quality q = judge("h200_waves.jsonl");
  EXPECT_EQ(q.problems, 5u);
  EXPECT_EQ(q.configs, 110u);
  EXPECT_GT(q.correlation, 0.7);
  EXPECT_GT(q.first, 0.98);
  EXPECT_GT(q.least_twelve, 0.98);
  EXPECT_LT(q.level, 0.06);
}

/// M of 96 to 960, of which some tiles reach a few rows beyond the last one. Those with edges now,
/// 330 configs, are left out: with them, and with what they took without edges, the correlation was 0.67.
TEST(ModelTest, EstimatesRankRowsBetweenTilesThatWereMeasured) {
  const Quality q = judge("h200_between.jsonl");
  EXPECT_EQ(q.problems, 6u);
  EXPECT_GT(q.configs, 300u);
  EXPECT_GT(q.correlation, 0.45);
  EXPECT_GT(q.least_correlation, 0.4);
  EXPECT_GT(q.first, 0.95);
  EXPECT_GT(q.twelve, 0.97);
  EXPECT_LT(q.level, 0.09);
}

/// Softmax and the normalisations. The times are of kernels of revision 1, some with a pass and barriers more
/// than what is estimated; beside those kernels' own estimates the correlation is 0.62
/// (scripts/fit_gpu_rows.py).
TEST(ModelTest, EstimatesRankRowsThatWereMeasured) {
  const Quality q = judge("h200_rows.jsonl");
  EXPECT_EQ(q.problems, 11u);
  EXPECT_GT(q.configs, 150u);
  EXPECT_GT(q.correlation, 0.45);
  EXPECT_GT(q.first, 0.94);
  EXPECT_GT(q.twelve, 0.98);
}

/// What searches of the suite's rows timed, a set for each search.
TimedByProblem read_searches(const std::vector<const char*>& tunings, const std::vector<const char*>& rows,
                             const Device& device = device_of("h200_waves.jsonl")) {
  const std::string results = paths::in_source("benchmarks/gpu/results/");
  const Template& source = find_template("hopper_ws");
  TimedByProblem all;
  LeftOut left_out;
  for (const char* tuning : tunings)
    for (const char* row : rows)
      for (const char* round : {"/r0.jsonl", "/r1.jsonl"}) {
        std::istringstream lines(read_file(results + tuning + "/raw/" + row + round));
        for (std::string line; std::getline(lines, line);) {
          const Json json = Json::parse(line);
          if (json.at("schema") != "deepgen.record/1" || json.value("template", "") != "hopper_ws" ||
              !json.contains("timing"))
            continue;
          const Problem problem = Problem::parse(json.at("problem").get<std::string>());
          const Config config = Config::from_json(json.at("config"));
          if (!is_as_timed(source, problem, config)) {
            ++left_out.count;
            continue;
          }
          all[tuning + problem.key()].push_back(
              {source.cost(problem, device, config), json.at("timing").at("seconds").get<double>()});
        }
      }
  return all;
}

/// Of rows of groups: even and skewed tables in turn.
TEST(ModelTest, EstimatesRankGroupsThatSearchesTimed) {
  const Quality q = judge(read_searches({"h200", "h200_again", "h200_third", "h200_waves"},
                                        {"moe8", "moe64", "moe8_dec", "moe8_glu"}));
  EXPECT_EQ(q.problems, 16u);
  EXPECT_GT(q.configs, 700u);
  EXPECT_GT(q.correlation, 0.5);
  EXPECT_GT(q.first, 0.95);
  EXPECT_GT(q.twelve, 0.97);
}

/// Weights that two rows of tiles read: how often they cross L2's fabric.
TEST(ModelTest, EstimatesRankTwoReadersThatSearchesTimed) {
  const Quality q =
      judge(read_searches({"h200", "h200_again", "h200_third", "h200_waves", "h200_refit", "h200_fabric"},
                          {"tp128", "skew_109"}));
  EXPECT_EQ(q.problems, 12u);
  EXPECT_GT(q.configs, 500u);
  EXPECT_GT(q.correlation, 0.53);
  EXPECT_GT(q.first, 0.96);
  EXPECT_GT(q.twelve, 0.98);
}

/// Large products on an H100, of which narrow tiles are slower than on an H200.
TEST(ModelTest, EstimatesRankWhatAnH100Timed) {
  const std::string results = paths::in_source("benchmarks/gpu/results/");
  const Device h100 = Device::from_json(Json::parse(read_file(results + "h100_attention/device.json")));
  const TimedByProblem all =
      read_searches({"h100_balanced"},
                    {"sq2048", "sq4096", "sq8192", "nn4096", "tn4096", "qkv_pre", "up_pre", "down_pre",
                     "gelu_2048", "swiglu", "h4096", "t4096", "e4096", "e8192", "i4096"},
                    h100);
  const Quality q = judge(all);
  tell("h100_balanced", q);
  EXPECT_EQ(q.problems, 15u);
  EXPECT_GT(q.configs, 700u);
  EXPECT_GT(q.first, 0.94);
  EXPECT_GT(q.twelve, 0.98);
}

/// Problems with too few configs of the template to rank are left out.
Quality judge_template(const std::string& of) {
  constexpr size_t kFewest = 5;
  TimedByProblem all;
  for (const char* file : {"h200", "h200_clusters"}) // timed on two days, not side by side
    for (auto& [problem, timed] : read_timed(std::string(file) + ".jsonl", of))
      if (timed.size() >= kFewest) all[file + (": " + problem)] = timed;
  return judge(all);
}

TEST(ModelTest, EachTemplatesEstimatesRankItsOwnConfigs) {
  const struct {
    const char* name;
    size_t problems;
    double correlation, first;
  } templates[] = {{"hopper_ws", 34, 0.68, 0.91}, {"mma_sync", 32, 0.2, 0.89}, {"gemv", 3, -0.2, 0.83}};
  for (const auto& t : templates) {
    const Quality q = judge_template(t.name);
    SCOPED_TRACE(t.name);
    EXPECT_EQ(q.problems, t.problems);
    EXPECT_GT(q.correlation, t.correlation);
    EXPECT_GT(q.first, t.first);
    tell(t.name, q);
  }
}

/// Of recorded spaces, where configs are no choice of the estimate; that of f32 has the only ones of `simt`.
TEST(ModelTest, EstimatesRankRecordedSpaces) {
  const std::filesystem::path folder = paths::in_source("benchmarks/search");
  TimedByProblem all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("sm_90a")) continue;
    const RecordedSpace space = RecordedSpace::read(entry.path());
    TimedByProblem one;
    LeftOut left_out;
    for (const RecordedConfig& c : space.configs) {
      const Template& from = find_template(c.choice.template_name);
      if (!c.timed() || !from.why_illegal(space.problem, space.device, c.choice.config).empty()) continue;
      if (!is_as_timed(from, space.problem, c.choice.config)) {
        ++left_out.count;
        continue;
      }
      one[entry.path().stem()].push_back(
          {from.cost(space.problem, space.device, c.choice.config), c.ratio * space.anchor_seconds});
    }
    tell(entry.path().stem(), judge(one));
    all.merge(one);
  }
  const Quality q = judge(all);
  EXPECT_GE(q.problems, 7u); // a further space is no fault
  EXPECT_GT(q.configs, 6500u);
  EXPECT_GT(q.correlation, 0.82);
  EXPECT_GT(q.least_correlation, 0.65);
  EXPECT_GT(q.first, 0.95);
  EXPECT_GT(q.twelve, 0.97);
}

} // namespace
} // namespace deepgen::model_test
