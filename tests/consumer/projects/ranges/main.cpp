// Calls functions of sizes that only a call knows, checks every element, and what is refused.
#include <kernels.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int failures = 0;
void expect(bool good, const char* what, long long at) {
  if (good) return;
  std::printf("wrong: %s at %lld\n", what, at);
  ++failures;
}

template <typename T>
std::vector<T> values(int64_t count) {
  std::vector<T> x(static_cast<size_t>(count) + 1);
  unsigned state = 1;
  for (T& v : x) v = T(int((state = state * 1664525u + 1013904223u) >> 20) - 2048) / T(2048);
  return x;
}

bool near(double x, double y) { return std::abs(x - y) <= 1e-4; }

void up(int64_t m) {
  constexpr int64_t n = 96, k = 64;
  const std::vector<float> a = values<float>(m * k), b = values<float>(n * k), bias = values<float>(n);
  std::vector<float> d(size_t(m * n) + 1, -7.0f);
  expect(kernels::up(m, a.data(), b.data(), bias.data(), d.data()) == DEEPGEN_OK, "status of up", m);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias[size_t(j)];
      for (int64_t x = 0; x < k; ++x) sum += double(a[size_t(i * k + x)]) * b[size_t(j * k + x)];
      expect(near(d[size_t(i * n + j)], std::max(sum, 0.0)), "element of up", m);
    }
  expect(d[size_t(m * n)] == -7.0f, "memory behind D of up", m);
  std::fill(d.begin(), d.end(), 0.0f);
  const deepgen::matrix<const float> views[] = {{a.data(), m, k}, {b.data(), n, k}};
  expect(kernels::up(views[0], views[1], bias.data(), deepgen::matrix<float>{d.data(), m, n}) == DEEPGEN_OK,
         "sized views of up", m);
  expect(kernels::up(deepgen::matrix<const float>{a.data(), m + 1, k}, views[1], bias.data(),
                     deepgen::matrix<float>{d.data(), m, n}) == DEEPGEN_ERROR_SIZE,
         "views of two sizes", m);
}

void gradient(int64_t k) {
  constexpr int64_t m = 40, n = 50;
  const std::vector<float> a = values<float>(k * m), b = values<float>(k * n);
  std::vector<float> d = values<float>(m * n), c = d;
  deepgen_gemm_args args;
  args.a = a.data(), args.b = b.data(), args.c = args.d = d.data(), args.beta = 0.5, args.k = k;
  expect(kernels::gradient(args) == DEEPGEN_OK, "status of gradient", k);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0.5 * c[size_t(i * n + j)];
      for (int64_t x = 0; x < k; ++x) sum += double(a[size_t(x * m + i)]) * b[size_t(x * n + j)];
      expect(near(d[size_t(i * n + j)], sum), "element of gradient", k);
    }
}

void heads(int64_t m, int64_t n, int64_t batch) {
  constexpr int64_t k = 16;
  const std::vector<double> a = values<double>(batch * m * k), b = values<double>(batch * k * n);
  std::vector<double> d(size_t(batch * m * n) + 1, -7.0);
  expect(kernels::heads(m, n, batch, a.data(), b.data(), d.data()) == DEEPGEN_OK, "status of heads", n);
  for (int64_t e = 0; e < batch; ++e)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t x = 0; x < k; ++x)
          sum += a[size_t((e * m + i) * k + x)] * b[size_t((e * k + x) * n + j)];
        expect(near(d[size_t((e * m + i) * n + j)], sum), "element of heads", n);
      }
  expect(d[size_t(batch * m * n)] == -7.0, "memory behind D of heads", n);
}

void swiglu(int64_t m) {
  constexpr int64_t n = 24, k = 32;
  const std::vector<float> a = values<float>(m * k), b = values<float>(2 * n * k);
  std::vector<float> d(size_t(m * n));
  expect(kernels::swiglu(m, a.data(), b.data(), d.data()) == DEEPGEN_OK, "status of swiglu", m);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double gate = 0, sum = 0;
      for (int64_t x = 0; x < k; ++x) {
        gate += double(a[size_t(i * k + x)]) * b[size_t(j * k + x)];
        sum += double(a[size_t(i * k + x)]) * b[size_t((n + j) * k + x)];
      }
      expect(near(d[size_t(i * n + j)], gate / (1 + std::exp(-gate)) * sum), "element of swiglu", m);
    }
}

void refused() {
  const int64_t most = kernels::up_sizes::most_m;
  std::vector<float> x(size_t(KERNELS_UP_BYTES_A / 4 + KERNELS_UP_BYTES_B / 4 + KERNELS_UP_BYTES_D / 4));
  for (int64_t m : {int64_t(-1), int64_t(-5), most + 1})
    expect(kernels::up(m, x.data(), x.data(), x.data(), x.data()) == DEEPGEN_ERROR_SIZE, "size out of range",
           m);
  deepgen_call_sizes low, high;
  expect(deepgen_size_ranges(kernels_up_function(), &low, &high) == DEEPGEN_OK && low.m == 1 &&
             high.m == most,
         "the range", high.m);
  expect(kernels::heads(0, 0, 0, nullptr, nullptr, nullptr) == DEEPGEN_OK, "a call of nothing", 0);
}

} // namespace

int main() {
  for (int64_t m = 0; m <= kernels::up_sizes::most_m; m = m < 40 ? m + 1 : m * 3 / 2) up(m);
  up(kernels::up_sizes::most_m);
  for (int64_t k : {0, 1, 2, 15, 16, 17, 100, 199, 200}) gradient(k);
  for (int64_t n = 1; n <= 33; ++n) heads((n * 7) % 21, n, 1 + n % 5);
  for (int64_t m = 0; m <= 30; ++m) swiglu(m);
  refused();
  char text[256];
  for (const deepgen_function* f :
       {kernels_up_function(), kernels_gradient_function(), kernels_heads_function()}) {
    expect(deepgen_verify(f, text, sizeof text) == DEEPGEN_OK, text, 0);
    std::puts(text);
  }
  if (!failures) std::puts("every size is right");
  return failures != 0;
}
