// The bits of a row of D: the same in calls of every size, at every place, beside any other rows, on any
// number of threads.
#include <kernels.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t kN = 80, kK = 700;

float value(uint64_t i) {
  i = (i + 1) * 0x9e3779b97f4a7c15u;
  return float(int64_t(i >> 40) - (1 << 23)) / float(1 << 23);
}

std::vector<float> values(int64_t count, uint64_t seed) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(value(uint64_t(i) + seed * 1000003));
  return out;
}

} // namespace

int main() {
  const std::vector<float> row = values(kK, 1), weights = values(kN * kK, 2), bias = values(kN, 3);
  std::vector<float> first;
  for (int64_t m = 1; m <= kernels::up_sizes::most_m; ++m) {
    std::vector<float> a = values(m * kK, 4 + uint64_t(m)), d(size_t(m * kN));
    const int64_t places[] = {0, m / 3, m / 2, m - 1};
    for (int64_t place : places) std::copy(row.begin(), row.end(), a.begin() + place * kK);
    if (kernels::up(m, a.data(), weights.data(), bias.data(), d.data()) != DEEPGEN_OK) return 1;
    for (int64_t place : places) {
      const std::vector<float> got(d.begin() + place * kN, d.begin() + (place + 1) * kN);
      if (first.empty()) first = got;
      if (std::memcmp(got.data(), first.data(), got.size() * sizeof(float)) != 0)
        return std::printf("other bits at m=%lld, row %lld\n", (long long)m, (long long)place), 1;
    }
  }
  std::vector<float> a = values(37 * kK, 9), d(size_t(37 * kN));
  for (int64_t place : {0, 17, 36}) std::copy(row.begin(), row.end(), a.begin() + place * kK);
  if (kernels::fixed(a.data(), weights.data(), d.data()) != DEEPGEN_OK) return 1;
  for (int64_t place : {17, 36})
    if (std::memcmp(&d[0], &d[size_t(place * kN)], size_t(kN) * sizeof(float)) != 0)
      return std::puts("other bits"), 1;
  char text[500];
  for (const deepgen_function* f : {kernels_up_function(), kernels_fixed_function()})
    if (deepgen_verify(f, text, sizeof text) != DEEPGEN_OK) return std::puts(text), 1;
  std::puts("rows are what they are");
  return 0;
}
