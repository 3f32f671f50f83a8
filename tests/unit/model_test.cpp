// The templates' estimates beside times that were measured (benchmarks/gpu/model).
#include "base/files.h"
#include "templates/template.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <sstream>

namespace deepgen {
namespace {

struct Timed {
  double estimate, seconds;
};

/// By problem.
std::map<std::string, std::vector<Timed>> read_timed() {
  std::istringstream lines(read_file(DEEPGEN_SOURCE_DIR "/benchmarks/gpu/model/h200.jsonl"));
  std::string line;
  std::getline(lines, line);
  const Device device = Device::from_json(Json::parse(line).at("device"));
  std::map<std::string, std::vector<Timed>> all;
  while (std::getline(lines, line)) {
    const Json json = Json::parse(line);
    const Problem problem = Problem::parse(json.at("problem").get<std::string>());
    const Template& from = find_template(json.at("template").get<std::string>());
    const Config config = Config::parse(json.at("config").get<std::string>());
    if (!from.why_illegal(problem, device, config).empty()) continue; // the space may have become smaller
    all[problem.key()].push_back({from.cost(problem, device, config), json.at("seconds").get<double>()});
  }
  return all;
}

std::vector<double> ranks(const std::vector<Timed>& timed, double Timed::*of) {
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

TEST(ModelTest, EstimatesRankWhatWasMeasured) {
  const auto all = read_timed();
  ASSERT_EQ(all.size(), 21u);
  double correlation = 0, first = 0, twelve = 0, level = 0;
  size_t configs = 0;
  for (const auto& [key, timed] : all) {
    configs += timed.size();
    const double share = 1.0 / double(all.size()), r = rank_correlation(timed);
    std::vector<double> logs;
    for (const Timed& t : timed) logs.push_back(std::log(t.seconds / t.estimate));
    std::nth_element(logs.begin(), logs.begin() + std::ptrdiff_t(logs.size() / 2), logs.end());
    EXPECT_GT(r, 0.3) << key;
    EXPECT_GT(found(timed, 12), 0.9) << key;
    EXPECT_LT(std::fabs(logs[logs.size() / 2]), 0.2) << key;
    correlation += r * share, first += found(timed, 1) * share, twelve += found(timed, 12) * share;
    level += std::fabs(logs[logs.size() / 2]) * share;
  }
  EXPECT_GT(configs, 1000u);
  EXPECT_GT(correlation, 0.75);
  EXPECT_GT(first, 0.92);
  EXPECT_GT(twelve, 0.985);
  EXPECT_LT(level, 0.05);
  RecordProperty("rank_correlation", std::to_string(correlation));
  RecordProperty("first_pick", std::to_string(first));
  RecordProperty("best_of_twelve", std::to_string(twelve));
}

} // namespace
} // namespace deepgen
