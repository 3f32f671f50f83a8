// One library for the CPU and two GPU archs, another for a GPU alone. Says what became of the GPU's
// functions.
#include <gpu_only.h>
#include <kernels.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int cpu() {
  std::vector<float> a(8 * 32), b(40 * 32), bias(40), d(8 * 40);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(int(i % 7) - 3);
  for (size_t i = 0; i < b.size(); ++i) b[i] = float(int(i % 5) - 2);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = float(int(i % 11) - 5);
  if (kernels::thin(a.data(), b.data(), bias.data(), d.data()) != DEEPGEN_OK)
    return std::puts("thin failed"), 1;
  for (int m = 0; m < 8; ++m)
    for (int n = 0; n < 40; ++n) {
      float sum = bias[n];
      for (int k = 0; k < 32; ++k) sum += a[m * 32 + k] * b[n * 32 + k];
      if (d[m * 40 + n] != std::max(sum, 0.0f)) return std::puts("thin is wrong"), 1;
    }
  return 0;
}

int main() {
  if (cpu()) return 1;
  const deepgen_stream stream = nullptr;
  alignas(256) float x[48 * 48] = {};
  const deepgen_status thin = kernels::thin(x, x, x, x, stream);
  const deepgen_status half = gpu_only::half(x, x, 0.0, 1.0, x, x, x, stream);
  std::printf("ok\nthin: %s\nhalf: %s\nprepare: %s\n", deepgen_status_string(thin),
              deepgen_status_string(half), deepgen_status_string(kernels::thin_prepare()));
  return 0;
}
