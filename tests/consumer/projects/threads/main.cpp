// A function that was tuned for two threads gives the same bits on one, two and three.
#include <kernels.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

std::vector<float> values(int64_t count, uint64_t seed) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t x = (uint64_t(i) + 1 + seed * 1000003) * 0x9e3779b97f4a7c15u;
    out.push_back(float(int64_t(x >> 40) - (1 << 23)) / float(1 << 23));
  }
  return out;
}

} // namespace

int main() {
  constexpr int64_t m = 192, n = 160, k = 176;
  const std::vector<float> a = values(m * k, 1), b = values(n * k, 2), bias = values(n, 3);
  std::vector<float> first;
  for (int threads : {1, 2, 3, 2}) {
    if (deepgen_set_num_threads(threads) != DEEPGEN_OK) return 1;
    std::vector<float> d(size_t(m * n));
    if (kernels::up(a.data(), b.data(), bias.data(), d.data()) != DEEPGEN_OK) return 1;
    if (first.empty()) first = d;
    if (std::memcmp(first.data(), d.data(), d.size() * sizeof(float)) != 0)
      return std::printf("other bits with %d threads\n", threads), 1;
  }
  char text[500];
  if (deepgen_verify(kernels_up_function(), text, sizeof text) != DEEPGEN_OK) return std::puts(text), 1;
  std::puts("threads have the same bits");
  return 0;
}
