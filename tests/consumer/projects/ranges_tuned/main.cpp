// Calls a function at every size of its range, and has the library verify itself.
#include <kernels.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const int64_t most = kernels::up_sizes::most_m, n = 96, k = 64;
  std::vector<float> a(size_t(most * k), 0.5f), b(size_t(n * k), 0.25f), bias(size_t(n), -1.0f);
  for (int64_t m = 1; m <= most; ++m) {
    std::vector<float> d(size_t(m * n), -7.0f);
    if (kernels::up(m, a.data(), b.data(), bias.data(), d.data()) != DEEPGEN_OK) return 1;
    for (float x : d)
      if (std::abs(x - 7.0f) > 1e-4f) return std::printf("wrong at m=%lld: %g\n", (long long)m, x), 1;
  }
  char text[500];
  if (deepgen_verify(kernels_up_function(), text, sizeof text) != DEEPGEN_OK) return std::puts(text), 1;
  std::puts("every size is right");
  return 0;
}
