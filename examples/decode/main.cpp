// Calls one function with batches that grow, checks each result against plain loops, and prints the curve.
#include <decode_kernels.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using up_sizes = decode_kernels::up_sizes;
constexpr int64_t most = up_sizes::most_m, n = up_sizes::n, k = up_sizes::k;

std::vector<float> random_values(int64_t count, float scale) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = uniform(generator);
  return values;
}

const std::vector<float> x = random_values(most * k, 1.0f), w = random_values(n * k, 0.05f),
                         bias = random_values(n, 0.1f);

void require(deepgen_status status) {
  if (status == DEEPGEN_OK) return;
  std::fprintf(stderr, "decode: %s\n", deepgen_status_string(status));
  std::exit(1);
}

/// The largest difference of some elements of each row to a plain loop; rows behind the call's must be as
/// they were.
double error(int64_t m, const std::vector<float>& y) {
  double worst = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = i % 61; j < n; j += 61) {
      double sum = bias[size_t(j)];
      for (int64_t c = 0; c < k; ++c) sum += double(x[size_t(i * k + c)]) * w[size_t(j * k + c)];
      worst = std::max(worst,
                       std::abs(0.5 * sum * (1 + std::erf(sum * 0.7071067811865476)) - y[size_t(i * n + j)]));
    }
  for (int64_t i = m * n; i < most * n; ++i)
    if (y[size_t(i)] != -7.0f) return INFINITY;
  return worst;
}

double seconds_of(int64_t m, std::vector<float>& y) {
  double best = 1e9;
  for (int round = 0; round < 15; ++round) {
    const auto start = std::chrono::steady_clock::now();
    require(decode_kernels::up(m, x.data(), w.data(), bias.data(), y.data()));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

double seconds_of_fixed(std::vector<float>& y) {
  double best = 1e9;
  for (int round = 0; round < 15; ++round) {
    const auto start = std::chrono::steady_clock::now();
    require(decode_kernels::up_1024(x.data(), w.data(), bias.data(), y.data()));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

} // namespace

int main() {
  require(deepgen_set_num_threads(1));
  std::printf("%8s %12s %10s  %s\n", "tokens", "ms", "GFLOP/s", "kernel");
  std::vector<float> y(static_cast<size_t>(most * n));
  for (int64_t m : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 128, 200, 256, 400, 512, 777, 1024}) {
    std::fill(y.begin(), y.end(), -7.0f);
    const double seconds = seconds_of(m, y);
    if (const double e = error(m, y); !(e <= 2e-5)) {
      std::fprintf(stderr, "decode: %lld tokens: differs from the plain loop by %g\n",
                   static_cast<long long>(m), e);
      return 1;
    }
    deepgen_call_sizes sizes;
    sizes.m = m;
    std::printf("%8lld %12.4f %10.1f  %s\n", static_cast<long long>(m), seconds * 1e3,
                2.0 * double(m * n * k) / seconds / 1e9,
                deepgen_selected_config_at(decode_kernels_up_function(), &sizes));
  }
  const double fixed = seconds_of_fixed(y);
  std::printf("%8s %12.4f %10.1f  built for 1024 tokens alone\n", "1024", fixed * 1e3,
              2.0 * double(most * n * k) / fixed / 1e9);
  std::puts("All results agree with the plain loops.");
}
