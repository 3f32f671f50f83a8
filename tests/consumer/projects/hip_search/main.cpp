// Calls a kernel as a program for AMD's GPUs does, and compares with sums on the host.
#include <kernels.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

// By dlopen, as there may be no HIP to link: the library that DeepGen's runtime uses too.
void* device_memory(size_t bytes) {
  static void* hip = dlopen(std::getenv("DEEPGEN_HIP_DRIVER"), RTLD_NOW);
  void* memory = nullptr;
  auto allocate = hip ? reinterpret_cast<int (*)(void**, size_t)>(dlsym(hip, "hipMalloc")) : nullptr;
  if (!allocate || allocate(&memory, bytes) != 0) std::printf("no device memory\n"), std::exit(1);
  return memory; // the fake device's is the host's
}

float value(int i) { return float(i % 7 - 3) * 0.25f; } // exact in bf16
uint16_t bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return uint16_t(bits >> 16);
}

int main() {
  constexpr int m = 20, n = 40, k = 48;
  auto* a = static_cast<uint16_t*>(device_memory(m * k * 2));
  auto* b = static_cast<uint16_t*>(device_memory(n * k * 2));
  auto* bias = static_cast<float*>(device_memory(n * 4));
  auto* d = static_cast<float*>(device_memory(m * n * 4));
  for (int i = 0; i < m * k; ++i) a[i] = bf16(value(i * 5 + i / k));
  for (int i = 0; i < n * k; ++i) b[i] = bf16(value(i * 3 + i / k));
  for (int i = 0; i < n; ++i) bias[i] = float(i - 20);
  const size_t bytes = kernels::up_workspace_size();
  const deepgen_status status = kernels::up(a, b, bias, d, nullptr, bytes ? device_memory(bytes) : nullptr, bytes);
  if (status != DEEPGEN_OK) return std::printf("up: %s\n", deepgen_status_string(status)), 1;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = bias[j]; // whole multiples of 1/16: exact
      for (int l = 0; l < k; ++l) sum += value((i * k + l) * 5 + i) * value((j * k + l) * 3 + j);
      if (d[i * n + j] != std::fmax(sum, 0.f))
        return std::printf("row %d, column %d: %g, not %g\n", i, j, double(d[i * n + j]), double(sum)), 1;
    }
  std::printf("right: %s\n", deepgen_launch_config(kernels_up_function()));
  return 0;
}
