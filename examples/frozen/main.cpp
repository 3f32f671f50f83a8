// Calls both kernels of the frozen library and checks them against plain loops.
#include <frozen_kernels.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

template <typename T>
std::vector<T> wave(int count, double step) {
  std::vector<T> values(count);
  for (int i = 0; i < count; ++i) values[i] = T(std::sin(step * i));
  return values;
}

/// D = silu(A W^T + bias), W stored [N, K].
double project_error() {
  constexpr int m = 128, n = 384, k = 256;
  const auto a = wave<float>(m * k, 0.1), w = wave<float>(n * k, 0.7), bias = wave<float>(n, 0.3);
  std::vector<float> d(m * n);
  if (frozen_kernels::project(a.data(), w.data(), bias.data(), d.data()) != DEEPGEN_OK) return INFINITY;
  double worst = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double x = bias[j];
      for (int l = 0; l < k; ++l) x += double(a[i * k + l]) * w[j * k + l];
      worst = std::fmax(worst, std::fabs(x / (1 + std::exp(-x)) - d[i * n + j]));
    }
  return worst / 1e-4;
}

/// D = A^T B, both stored with K rows.
double gram_error() {
  constexpr int m = 96, n = 96, k = 640;
  const auto a = wave<double>(k * m, 0.2), b = wave<double>(k * n, 0.9);
  std::vector<double> d(m * n);
  if (frozen_kernels::gram(a.data(), b.data(), d.data()) != DEEPGEN_OK) return INFINITY;
  double worst = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double x = 0;
      for (int l = 0; l < k; ++l) x += a[l * m + i] * b[l * n + j];
      worst = std::fmax(worst, std::fabs(x - d[i * n + j]));
    }
  return worst / 1e-11;
}

} // namespace

int main() {
  const double project = project_error(), gram = gram_error();
  std::printf("error relative to tolerance: project %.3f, gram %.3f\n", project, gram);
  return project <= 1 && gram <= 1 ? 0 : 1;
}
