// CPU time of every row of rows.txt on one thread: DeepGen, oneDNN where it serves the row, a loop that reads
// as many bytes, and memcpy; interleaved in rounds of random order, ratios within a round.
//   rows_benchmark --csv FILE [--rounds n] [--row name] [--sample s]
// Raw samples go to FILE, the table to stdout.
#include "arms.h"

#include <suite.h>

#include <dnnl.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace {

const std::vector<RowsProblem>& problems() {
  static const std::vector<RowsProblem> all = {
#include "suite_rows.inc"
  };
  return all;
}

[[noreturn]] void fail(const RowsProblem& row, const std::string& what) {
  std::fprintf(stderr, "rows_benchmark: %s: %s\n", row.name, what.c_str());
  std::exit(1);
}

/// As f32, or as bf16 cut off.
Bytes values(int64_t count, int64_t size, uint32_t seed) {
  Bytes data(size_t(count * size));
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(-4, 4);
  for (int64_t i = 0; i < count; ++i) {
    const float x = uniform(rng);
    std::memcpy(data.data() + i * size, reinterpret_cast<const char*>(&x) + 4 - size, size_t(size));
  }
  return data;
}

RowsOperands operands(const RowsProblem& row) {
  const int64_t size = row.element();
  RowsOperands o;
  o.x = values(row.m * row.n, size, 1);
  o.scale = values(row.n, size, 2), o.bias = values(row.n, size, 3);
  o.d = Bytes(o.x.size());
  for (int64_t i = 0; i < row.n; ++i) {
    o.wide_scale.push_back(element(o.scale, size, i));
    o.wide_bias.push_back(element(o.bias, size, i));
  }
  return o;
}

/// DeepGen, which comes first, and oneDNN compute the same, to a few roundings of the type.
void check(const RowsProblem& row, const std::vector<Timed>& arms, RowsOperands& o) {
  const int64_t size = row.element();
  const float relative = size == 4 ? 1e-4f : 0x1p-7f;
  arms[0].arm.call();
  const Bytes own = o.d;
  for (const Timed& t : arms) {
    if (!t.arm.counted) continue;
    std::fill(o.d.begin(), o.d.end(), char(0xff)); // NaN
    t.arm.call();
    for (int64_t i = 0; i < row.m * row.n; ++i) {
      const float expected = element(own, size, i), found = element(o.d, size, i);
      if (!(std::abs(found - expected) <= 1e-5f + relative * std::abs(expected)))
        fail(row, t.arm.name + " computes something else");
    }
  }
}

/// Beside one peer, over rows.
struct Score {
  double logs = 0, worst = 1e9;
  int count = 0;
  std::string worst_row, losses;
  void add(const RowsProblem& row, const Ratio& r, double bar) {
    logs += std::log(r.median), ++count;
    if (r.median < worst) worst = r.median, worst_row = row.name;
    if (r.median >= bar) return;
    char text[80];
    std::snprintf(text, sizeof text, "%s%s %.3f", losses.empty() ? "" : ", ", row.name, r.median);
    losses += text;
  }
};
using Scores = std::map<std::string, Score>; ///< by type and peer

double bar_of(const std::string& peer) { return peer == "reading" ? 0.9 : 1; }

void print(const RowsProblem& row, const std::vector<Timed>& arms, Scores& scores) {
  std::map<std::string, std::string> cells;
  for (size_t i = 1; i < arms.size(); ++i) {
    const std::string& peer = arms[i].arm.name;
    const Ratio r = ratio(arms[i], arms[0]);
    char text[60];
    std::snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", r.median, r.low, r.high);
    cells[peer] = text;
    if (peer != "copying") scores[peer + ", " + row.type].add(row, r, bar_of(peer));
  }
  std::printf("| %s | %lld x %lld | %.1f | %s | %s | %s | `%s` |\n", row.name, (long long)row.m,
              (long long)row.n, 2 * double(row.bytes()) / quantile(arms[0].seconds, 0.5) / 1e9,
              cells.count("oneDNN") ? cells["oneDNN"].c_str() : "-", cells["reading"].c_str(),
              cells["copying"].c_str(), deepgen_selected_config(row.function));
  std::fflush(stdout);
}

void run_row(const RowsProblem& row, const Settings& s, double sample, Samples& csv, Scores& scores) {
  RowsOperands o = operands(row);
  deepgen_rows_args args;
  args.x = o.x.data(), args.d = o.d.data();
  const bool softmax = !std::strcmp(row.kind, "softmax"), norm = !std::strcmp(row.kind, "layer_norm");
  if (!softmax) args.scale = o.scale.data();
  if (norm) args.bias = o.bias.data();
  if (deepgen_status status = row.run(&args)) fail(row, deepgen_status_string(status));
  std::vector<Timed> arms = {{{"DeepGen", true, [&] { row.run(&args); }}, 1, {}}};
  for (Arm& arm : onednn_arms(row, o)) arms.push_back({std::move(arm), 1, {}});
  arms.push_back({reading_arm(o), 1, {}});
  arms.push_back({copying_arm(o), 1, {}});
  check(row, arms, o);
  time_on_one_thread(arms, s.rounds, sample);
  csv.add(row.name, arms);
  print(row, arms, scores);
}

} // namespace

int main(int argc, char** argv) {
  Settings s;
  double sample = 0.02; // seconds
  read_settings(argc, argv, s, {{"--sample", &sample}});
  deepgen_set_num_threads(1);
  Samples csv(s.csv, "row");
  const dnnl_version_t* onednn = dnnl_version();
  std::printf(
      "One thread, oneDNN %d.%d.%d. Time of oneDNN, of reading as many bytes, of copying X to D / DeepGen's "
      "time: median [quartiles] of %d rounds.\n\n",
      onednn->major, onednn->minor, onednn->patch, s.rounds);
  std::printf("| row | M x N | GB/s | oneDNN | reading | copying | config |\n"
              "| --- | --- | --- | --- | --- | --- | --- |\n");
  Scores scores;
  for (const RowsProblem& row : problems())
    if (s.takes(row.name)) run_row(row, s, sample, csv, scores);
  if (scores.empty()) return 1;
  std::printf("\n| beside | rows | geometric mean | worst | bar | rows below the bar |\n"
              "| --- | --- | --- | --- | --- | --- |\n");
  for (const auto& [peer, score] : scores)
    std::printf("| %s | %d | %.3f | %.3f (%s) | %.2f | %s |\n", peer.c_str(), score.count,
                std::exp(score.logs / score.count), score.worst, score.worst_row.c_str(),
                bar_of(peer.substr(0, peer.find(','))), score.losses.empty() ? "none" : score.losses.c_str());
  return csv.good() ? 0 : 1;
}
