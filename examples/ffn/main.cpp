// Runs a feed-forward block with tuned kernels, checks it against plain loops, and times each GEMM beside the
// default config and OpenBLAS (if installed), all on one thread and interleaved in one process.
#include <ffn_kernels.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kRows = FFN_ROWS, kModel = FFN_MODEL, kHidden = FFN_HIDDEN;
using Matrix = std::vector<float>;

Matrix random_matrix(int rows, int columns, float scale) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  Matrix m(size_t(rows) * columns);
  for (float& x : m) x = uniform(generator);
  return m;
}

float gelu(float x) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678f)); }

void require(deepgen_status status) {
  if (status == DEEPGEN_OK) return;
  std::fprintf(stderr, "ffn: %s\n", deepgen_status_string(status));
  std::exit(1);
}

/// One layer: d[rows, n] = activation(a[rows, k] * w[n, k]^T + bias[n]).
struct Layer {
  const char* name;
  int n, k;
  bool activation;
  const Matrix &a, &w, &bias;
};

/// Largest difference to a plain loop in double precision.
double error(const Layer& l, const Matrix& d) {
  double worst = 0;
  for (int m = 0; m < kRows; ++m)
    for (int n = 0; n < l.n; ++n) {
      double sum = l.bias[n];
      for (int k = 0; k < l.k; ++k) sum += double(l.a[size_t(m) * l.k + k]) * l.w[size_t(n) * l.k + k];
      if (l.activation) sum = 0.5 * sum * (1.0 + std::erf(sum * 0.7071067811865476));
      worst = std::max(worst, std::abs(sum - d[size_t(m) * l.n + n]));
    }
  return worst;
}

/// cblas_sgemm of an OpenBLAS that is found at run time; null without one.
using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                       float*, int);
Sgemm find_openblas() {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  if (auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads")))
    set_threads(1);
  return reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
}

void openblas_gemm(Sgemm sgemm, const Layer& l, Matrix& d) {
  constexpr int row_major = 101, no_trans = 111, trans = 112;
  sgemm(row_major, no_trans, trans, kRows, l.n, l.k, 1.0f, l.a.data(), l.k, l.w.data(), l.k, 0.0f, d.data(),
        l.n);
}

void epilogue(const Layer& l, Matrix& d) {
  for (int m = 0; m < kRows; ++m)
    for (int n = 0; n < l.n; ++n) {
      float& x = d[size_t(m) * l.n + n];
      x += l.bias[n];
      if (l.activation) x = gelu(x);
    }
}

struct Arm {
  std::string name;
  std::function<void()> call;
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Times all arms in turn, round by round, so that drift of the clock hits them alike; ratios are per round.
void race(const Layer& l, std::vector<Arm>& arms) {
  constexpr int warm_up = 5, rounds = 61;
  for (int round = 0; round < warm_up + rounds; ++round)
    for (size_t i = 0; i < arms.size(); ++i) {
      Arm& arm = arms[(i + round) % arms.size()];
      const auto start = std::chrono::steady_clock::now();
      arm.call();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      if (round >= warm_up) arm.seconds.push_back(time.count());
    }
  std::printf("\n%s: %d x %d x %d\n  %-26s %10s %10s %22s\n", l.name, kRows, l.n, l.k, "", "ms", "GFLOP/s",
              "tuned is faster by");
  for (const Arm& arm : arms) {
    std::vector<double> ratios;
    for (int r = 0; r < rounds; ++r) ratios.push_back(arm.seconds[r] / arms[0].seconds[r]);
    const double t = median(arm.seconds);
    std::printf("  %-26s %10.3f %10.1f %21.2fx\n", arm.name.c_str(), t * 1e3,
                2.0 * kRows * l.n * l.k / t / 1e9, median(ratios));
  }
}

using Kernel = deepgen_status (*)(const float*, const float*, const float*, float*);

/// Checks, then times one layer. Leaves the tuned result in `d`.
void run(const Layer& l, Kernel tuned, Kernel plain, Sgemm sgemm, Matrix& d) {
  Matrix other(d.size());
  auto call = [&l](Kernel f, Matrix& out) { require(f(l.a.data(), l.w.data(), l.bias.data(), out.data())); };
  for (auto [name, f] : {std::pair{"default", plain}, {"tuned", tuned}}) {
    call(f, d);
    if (const double e = error(l, d); !(e <= 2e-5)) {
      std::fprintf(stderr, "ffn: %s, %s: differs from the plain loop by %g\n", l.name, name, e);
      std::exit(1);
    }
  }
  std::vector<Arm> arms{{"tuned", [&] { call(tuned, d); }, {}},
                        {"default config", [&] { call(plain, other); }, {}}};
  if (sgemm) {
    arms.push_back(
        {"OpenBLAS + epilogue loop", [&] { openblas_gemm(sgemm, l, other), epilogue(l, other); }, {}});
    arms.push_back({"OpenBLAS, GEMM alone", [&] { openblas_gemm(sgemm, l, other); }, {}});
  }
  race(l, arms);
}

} // namespace

int main() {
  require(deepgen_set_num_threads(1));
  const Sgemm sgemm = find_openblas();
  if (!sgemm) std::puts("OpenBLAS is not installed: not compared");

  const Matrix x = random_matrix(kRows, kModel, 1.0f);
  const Matrix w1 = random_matrix(kHidden, kModel, 0.05f), b1 = random_matrix(1, kHidden, 0.1f);
  const Matrix w2 = random_matrix(kModel, kHidden, 0.05f), b2 = random_matrix(1, kModel, 0.1f);
  Matrix hidden(size_t(kRows) * kHidden), y(size_t(kRows) * kModel);

  run({"up: gelu(x W1^T + b1)", kHidden, kModel, true, x, w1, b1}, ffn_kernels_up, ffn_kernels_up_default,
      sgemm, hidden);
  run({"down: h W2^T + b2", kModel, kHidden, false, hidden, w2, b2}, ffn_kernels_down,
      ffn_kernels_down_default, sgemm, y);

  std::printf("\nAll results agree with the plain loops.\nup:   %s\ndown: %s\n",
              deepgen_selected_config(ffn_kernels_up_function()),
              deepgen_selected_config(ffn_kernels_down_function()));
}
