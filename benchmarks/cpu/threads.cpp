// Wall time of every arm of a row on several threads, interleaved and paired: rounds in random order, ratios
// within a round.
//   cpu_threads --csv FILE [--threads n] [--rounds n] [--row name] [--sample s] [--pause s]
// Raw samples go to FILE, the table to stdout. An arm rests before it is timed: OpenBLAS's and OpenMP's
// threads spin for up to 30 ms behind their last call, which would be at the next one's cost.
#include "gemms.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

namespace {

struct ThreadSettings : Settings {
  int threads = 2;
  double sample = 0.1, pause = 0.06; ///< seconds
};

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void fail(const Row& row, const char* what) {
  std::fprintf(stderr, "cpu_threads: %s: %s\n", row.name, what);
  std::exit(1);
}

std::vector<float> values(int64_t count, uint32_t seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> v(static_cast<size_t>(count));
  for (float& x : v) x = uniform(rng);
  return v;
}

void run_own(const Row& row, const deepgen_gemm_args& args) {
  if (deepgen_status status = row.run(&args)) fail(row, deepgen_status_string(status));
}

/// The same bits on one thread and on all, and what every peer computes.
void check(const Row& row, const deepgen_gemm_args& args, std::vector<Timed>& arms, std::vector<float>& d,
           int threads) {
  deepgen_set_num_threads(1);
  run_own(row, args);
  const std::vector<float> expected = d;
  deepgen_set_num_threads(threads);
  std::fill(d.begin(), d.end(), NAN);
  run_own(row, args);
  if (std::memcmp(d.data(), expected.data(), d.size() * sizeof(float)))
    fail(row, "other bits on several threads");
  for (Timed& t : arms) {
    std::fill(d.begin(), d.end(), NAN);
    t.arm.call();
    if (!agrees(row, d.data(), expected.data(), d.size()))
      fail(row, (t.arm.name + " computes something else").c_str());
  }
}

void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double sample_of(const Timed& t, double pause) {
  rest(pause);
  t.arm.call(); // wakes its threads
  const double begin = wall_seconds();
  for (int64_t c = 0; c < t.calls; ++c) t.arm.call();
  return (wall_seconds() - begin) / double(t.calls);
}

void measure(std::vector<Timed>& arms, const ThreadSettings& s) {
  for (Timed& t : arms)
    t.calls = std::max<int64_t>(1, int64_t(s.sample / std::max(sample_of(t, s.pause), 1e-7)));
  time_in_rounds(arms, s.rounds, [&](const Timed& t) { return sample_of(t, s.pause); });
}

struct Score {
  double logs = 0, worst = 1e9;
  int count = 0;
  std::string worst_row, losses;
  void add(const Row& row, const Ratio& r) {
    logs += std::log(r.median), ++count;
    if (r.median < worst) worst = r.median, worst_row = row.name;
    char text[80];
    std::snprintf(text, sizeof text, "%s%s %.3f", losses.empty() ? "" : ", ", row.name, r.median);
    if (r.median < 1) losses += text;
  }
  double mean() const { return std::exp(logs / std::max(count, 1)); }
};

struct Scores {
  Score openblas, best;
};

void print(const Row& row, const std::vector<Timed>& arms, Scores& scores) {
  const Timed& own = arms.back();
  Ratio best{1e9, 0, 0};
  std::string text;
  for (size_t i = 0; i + 1 < arms.size(); ++i) {
    const Ratio r = ratio(arms[i], own);
    char cell[80];
    std::snprintf(cell, sizeof cell, " %s %.3f [%.3f, %.3f] |", arms[i].arm.name.c_str(), r.median, r.low,
                  r.high);
    text += cell;
    if (r.median < best.median) best = r;
    if (arms[i].arm.name == "OpenBLAS") scores.openblas.add(row, r);
  }
  scores.best.add(row, best);
  std::printf("| %s | %lld x %lld x %lld | %.1f |%s `%s` |\n", row.name, (long long)row.m, (long long)row.n,
              (long long)row.k, row.flops() / quantile(own.seconds, 0.5) / 1e9, text.c_str(),
              deepgen_selected_config(row.function));
  std::fflush(stdout);
}

void run_row(const Row& row, const ThreadSettings& s, Samples& csv, Scores& scores) {
  const std::vector<float> a = values(row.m * row.k, 7), b = values(row.k * row.n, 8);
  std::vector<float> d(size_t(row.m * row.n));
  deepgen_gemm_args args;
  args.a = a.data(), args.b = b.data(), args.d = d.data();
  std::vector<Timed> arms;
  for (Arm& arm : threaded_peer_arms(row, {a.data(), b.data(), nullptr, d.data()}, s.threads))
    arms.push_back({std::move(arm), 1, {}});
  if (arms.empty()) fail(row, "no peer is installed");
  check(row, args, arms, d, s.threads);
  arms.push_back({{"DeepGen", true, [&] { row.run(&args); }}, 1, {}});
  measure(arms, s);
  csv.add(row.name + ("," + std::to_string(s.threads)), arms);
  print(row, arms, scores);
}

void print(const char* peer, const Score& score) {
  std::printf("Against %s: geometric mean %.3f over %d rows, worst %.3f (%s). Losses: %s.\n", peer,
              score.mean(), score.count, score.worst, score.worst_row.c_str(),
              score.losses.empty() ? "none" : score.losses.c_str());
}

} // namespace

int main(int argc, char** argv) {
  ThreadSettings s;
  s.rounds = 21;
  double threads = s.threads;
  read_settings(argc, argv, s, {{"--threads", &threads}, {"--sample", &s.sample}, {"--pause", &s.pause}});
  s.threads = int(threads);
  if (s.threads < 1) {
    std::fprintf(stderr, "cpu_threads: --threads is at least 1\n");
    return 1;
  }
  Samples csv(s.csv, "row,threads");
  std::printf("%d threads. Columns of libraries: time / DeepGen's time, median [quartiles] of %d rounds.\n\n",
              s.threads, s.rounds);
  std::printf("| row | M x N x K | GFLOP/s | OpenBLAS | oneDNN matmul | oneDNN sgemm | config |\n"
              "| --- | --- | --- | --- | --- | --- | --- |\n");
  Scores scores;
  for (const Row& row : rows())
    if (s.takes(row.name)) run_row(row, s, csv, scores);
  if (scores.best.count == 0) return 1;
  std::printf("\n");
  if (scores.openblas.count) print("OpenBLAS", scores.openblas);
  print("the best peer of each row", scores.best);
  return csv.good() ? 0 : 1;
}
