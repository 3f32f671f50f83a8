// Functions of a range of M on one thread, at sizes most of which they were never tuned at, beside the best
// of OpenBLAS and oneDNN at each size: rounds in random order, thread CPU time, ratios within a round.
//   cpu_ranges --csv FILE [--rounds n] [--row name] [--offset 16]       raw samples to FILE, the table to
//   stdout
// --offset: bytes from a line of the cache to where each matrix begins. 16 is what malloc gives large blocks,
// 0 what frameworks ask for.
#include "gemms.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

constexpr int kSizes = 20;

/// Even in the logarithm, each once; the range is much longer than they are many.
std::vector<int64_t> sizes_between(int64_t least, int64_t most) {
  std::vector<int64_t> sizes = {least};
  for (int i = 1; i < kSizes; ++i) {
    const double step = double(i) / (kSizes - 1);
    sizes.push_back(
        std::max(sizes.back() + 1,
                 int64_t(std::llround(double(least) * std::pow(double(most) / double(least), step)))));
  }
  return sizes;
}

/// Its first element is `offset` bytes behind the start of a line.
class Matrix {
public:
  Matrix(int64_t count, int64_t offset) : size_(size_t(count)) {
    constexpr size_t kLine = 64;
    memory_.resize(size_ + 2 * kLine / sizeof(float));
    const size_t beyond = reinterpret_cast<uintptr_t>(memory_.data()) % kLine;
    first_ = (2 * kLine - beyond + size_t(offset)) % kLine / sizeof(float);
  }
  float* data() { return memory_.data() + first_; }
  const float* data() const { return memory_.data() + first_; }
  size_t size() const { return size_; }
  float* begin() { return data(); }
  float* end() { return data() + size_; }

private:
  size_t size_, first_;
  std::vector<float> memory_;
};

Matrix random_matrix(int64_t count, int64_t offset, std::mt19937& rng) {
  Matrix m(count, offset);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& x : m) x = uniform(rng);
  return m;
}

/// DeepGen last.
std::vector<Timed> arms_of(const Row& row, const Matrix& a, const Matrix& b, Matrix& d) {
  std::vector<Timed> arms;
  for (Arm& arm : threaded_peer_arms(row, {a.data(), b.data(), nullptr, d.data()}, 1))
    arms.push_back({std::move(arm), 1, {}});
  deepgen_gemm_args args;
  args.m = row.m, args.a = a.data(), args.b = b.data(), args.d = d.data();
  arms.push_back({{"DeepGen", true,
                   [args, run = row.run] {
                     if (const deepgen_status status = run(&args)) {
                       std::fprintf(stderr, "%s\n", deepgen_status_string(status));
                       std::exit(1);
                     }
                   }},
                  1,
                  {}});
  return arms;
}

/// Every arm must agree with the first one before it is timed.
void check(const std::vector<Timed>& arms, const Row& row, Matrix& d) {
  std::vector<float> expected;
  for (const Timed& t : arms) {
    std::fill(d.begin(), d.end(), NAN);
    t.arm.call();
    if (expected.empty()) expected.assign(d.begin(), d.end());
    if (agrees(row, d.data(), expected.data(), d.size())) continue;
    std::fprintf(stderr, "%s, m=%lld: %s computes something else\n", row.name, (long long)row.m,
                 t.arm.name.c_str());
    std::exit(1);
  }
}

struct Means {
  double logs = 0, worst = 1e9;
  int count = 0, below = 0;
};

void run_size(const Row& row, int rounds, int64_t offset, Samples& csv, Means& means) {
  std::mt19937 rng(7);
  const Matrix a = random_matrix(row.m * row.k, offset, rng), b = random_matrix(row.k * row.n, offset, rng);
  Matrix d(row.m * row.n, offset);
  std::vector<Timed> arms = arms_of(row, a, b, d);
  check(arms, row, d);
  time_on_one_thread(arms, rounds, 0.005);
  csv.add(row.name + ("," + std::to_string(row.m)), arms);
  const Timed& own = arms.back();
  Ratio best{1e9, 0, 0};
  std::string best_name;
  for (size_t i = 0; i + 1 < arms.size(); ++i)
    if (const Ratio r = ratio(arms[i], own); r.median < best.median) best = r, best_name = arms[i].arm.name;
  deepgen_call_sizes sizes;
  sizes.m = row.m;
  std::printf("| %s | %lld | %.1f | %.3f [%.3f, %.3f] | %s | `%s` |\n", row.name, (long long)row.m,
              row.flops() / quantile(own.seconds, 0.5) / 1e9, best.median, best.low, best.high,
              best_name.c_str(), deepgen_selected_config_at(row.function, &sizes));
  std::fflush(stdout);
  means.logs += std::log(best.median), means.worst = std::min(means.worst, best.median), ++means.count;
  means.below += best.median < 0.93;
}

} // namespace

int main(int argc, char** argv) {
  Settings s;
  double offset = 16;
  read_settings(argc, argv, s, {{"--offset", &offset}});
  if (offset < 0 || offset > 60 || std::fmod(offset, sizeof(float)) != 0) {
    std::fprintf(stderr, "cpu_ranges: --offset is 0, 4, ... 60\n");
    return 1;
  }
  deepgen_set_num_threads(1);
  Samples csv(s.csv, "row,m");
  std::printf(
      "| row | M | GFLOP/s | best peer's time / DeepGen's, median [quartiles] | best peer | config |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows()) {
    if (!s.takes(row.name)) continue;
    deepgen_call_sizes least, most;
    if (deepgen_size_ranges(row.function, &least, &most) != DEEPGEN_OK) return 1;
    Means means;
    for (int64_t m : sizes_between(std::max<int64_t>(1, least.m), most.m)) {
      Row one = row;
      one.m = m;
      run_size(one, s.rounds, int64_t(offset), csv, means);
    }
    std::printf("\n%s: geometric mean %.3f over %d sizes, worst %.3f, %d under 0.93\n\n", row.name,
                std::exp(means.logs / means.count), means.count, means.worst, means.below);
  }
  return csv.good() ? 0 : 1;
}
