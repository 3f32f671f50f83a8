// Interleaved, paired timing of every arm of a row: rounds in random order, thread CPU time, ratios within a
// round.
//   cpu_benchmark --csv FILE [--rounds n] [--row name]       raw samples to FILE, the table to stdout
#include "gemms.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

namespace {

float* allocate(int64_t count, std::mt19937& rng, int colour) {
  // Staggered within a page, so that equal sizes do not fight for the same cache sets.
  char* base = static_cast<char*>(std::aligned_alloc(4096, (size_t(count) * 4 + 16384) / 4096 * 4096));
  float* data = reinterpret_cast<float*>(base + 64 * 5 * colour);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < count; ++i) data[i] = uniform(rng);
  return data;
}

/// Every arm must agree with the first peer before it is timed.
void check(std::vector<Timed>& arms, const Row& row, float* d) {
  const size_t count = size_t(row.m * row.n * row.batch);
  std::vector<float> expected;
  const auto wrong = [&](const Timed& t) {
    std::fill(d, d + count, NAN);
    t.arm.call();
    if (expected.empty()) expected.assign(d, d + count);
    if (agrees(row, d, expected.data(), count)) return false;
    std::fprintf(stderr, "%s: %s computes something else, left out\n", row.name, t.arm.name.c_str());
    return true;
  };
  arms.erase(std::remove_if(arms.begin(), arms.end(), wrong), arms.end());
}

struct Means {
  double openblas = 0, best = 0, worst = 1e9;
  int count = 0;
};

void print(const Row& row, const std::vector<Timed>& arms, Means& means) {
  const Timed& own = arms.back();
  double best = 1e9, against_openblas = 1;
  std::string best_name, others;
  for (size_t i = 0; i + 1 < arms.size(); ++i) {
    Ratio r = ratio(arms[i], own);
    char text[120];
    std::snprintf(text, sizeof text, "%s%s %.3f [%.3f, %.3f]%s", others.empty() ? "" : "; ",
                  arms[i].arm.name.c_str(), r.median, r.low, r.high,
                  arms[i].arm.counted ? "" : " (not counted)");
    others += text;
    if (arms[i].arm.counted && r.median < best) best = r.median, best_name = arms[i].arm.name;
    if (arms[i].arm.name == "OpenBLAS") against_openblas = r.median;
  }
  std::printf("| %s | %lld x %lld x %lld%s | %.1f | %.3f | %.3f (%s) | %s | `%s` |\n", row.name,
              (long long)row.m, (long long)row.n, (long long)row.k,
              row.batch > 1 ? (" b" + std::to_string(row.batch)).c_str() : "",
              row.flops() / quantile(own.seconds, 0.5) / 1e9, against_openblas, best, best_name.c_str(),
              others.c_str(), deepgen_selected_config(row.function));
  std::fflush(stdout);
  means.openblas += std::log(against_openblas), means.best += std::log(best);
  means.worst = std::min(means.worst, best), ++means.count;
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
/// B as DeepGen's call takes it: packed, or null where it takes B itself.
std::unique_ptr<void, Free> packed_b(const Row& row, const float* b) {
  const size_t bytes = deepgen_packed_b_size(row.function);
  if (!bytes) return nullptr;
  const int64_t ldb = row.b_transposed ? row.k : row.n;
  std::unique_ptr<void, Free> packed(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  if (deepgen_status status = deepgen_pack_b(row.function, b, ldb, row.k * row.n, packed.get(), bytes)) {
    std::fprintf(stderr, "%s: %s\n", row.name, deepgen_status_string(status));
    std::exit(1);
  }
  return packed;
}

void run_row(const Row& row, int rounds, Samples& csv, Means& means) {
  std::mt19937 rng(7);
  float* a = allocate(row.m * row.k * row.batch, rng, 0);
  float* b = allocate(row.k * row.n * row.batch, rng, 1);
  float* bias = allocate(row.n, rng, 2);
  float* d = allocate(row.m * row.n * row.batch, rng, 3);
  std::vector<Timed> arms;
  for (Arm& arm : peer_arms(row, {a, b, bias, d})) arms.push_back({std::move(arm), 1, {}});
  deepgen_gemm_args args;
  const auto packed = packed_b(row, b);
  args.a = a, args.b = packed ? packed.get() : b, args.d = d, args.bias = row.bias ? bias : nullptr;
  arms.push_back({{"DeepGen", true, [&] { row.run(&args); }}, 1, {}});
  if (deepgen_status status = row.run(&args)) {
    std::fprintf(stderr, "%s: %s\n", row.name, deepgen_status_string(status));
    std::exit(1);
  }
  check(arms, row, d);
  time_on_one_thread(arms, rounds, 0.005, 0.06);
  csv.add(row.name, arms);
  print(row, arms, means);
  for (float* p : {a, b, bias, d})
    std::free(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) & ~uintptr_t(4095)));
}

} // namespace

int main(int argc, char** argv) {
  Settings s;
  s.rounds = 31;
  read_settings(argc, argv, s);
  deepgen_set_num_threads(1);
  Samples csv(s.csv, "row");
  std::printf(
      "| row | M x N x K | GFLOP/s | vs OpenBLAS | vs best peer | every peer: time / DeepGen's time, median "
      "[quartiles] | config |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  Means means;
  for (const Row& row : rows())
    if (s.takes(row.name)) run_row(row, s.rounds, csv, means);
  if (means.count == 0) return 1;
  std::printf("\nGeometric mean over %d rows: %.3f against OpenBLAS, %.3f against the best peer of each row; "
              "worst row %.3f.\n",
              means.count, std::exp(means.openblas / means.count), std::exp(means.best / means.count),
              means.worst);
  return csv.good() ? 0 : 1;
}
