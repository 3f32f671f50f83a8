// What it costs to find the function of a problem among those of a workload, in C++ and in C: the problems of
// keys.inc in turn, in an order that no predictor of branches has seen.
#include <kernels_find.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr int kRounds = 15, kLookUps = 1 << 20;

struct Key {
  int64_t m, n, k;
  kernels_type type;
  kernels_layout layout;
  const char* epilogue;
};
const Key kKeys[] = {
#include "keys.inc"
};

/// Nanoseconds of one of kLookUps: the fastest round, and the median one.
template <typename Find>
void tell(const char* what, const Find& find) {
  std::vector<size_t> order(kLookUps);
  std::mt19937 random(1);
  for (size_t& i : order) i = random() % std::size(kKeys);
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    size_t found = 0;
    const auto start = std::chrono::steady_clock::now();
    for (const size_t i : order) found += find(i);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    if (found != order.size()) {
      std::printf("%s: only %zu of %zu were found\n", what, found, order.size());
      std::exit(1);
    }
    times.push_back(time.count() / kLookUps);
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"%s\":{\"fastest\":%.2f,\"median\":%.2f}}\n", what, times.front(), times[times.size() / 2]);
}

} // namespace

int main() {
  std::vector<kernels::problem> cxx;
  std::vector<kernels_problem> c;
  for (const Key& key : kKeys) {
    const auto type = static_cast<kernels::type>(key.type);
    kernels::problem p{key.m, key.n, key.k};
    p.a = p.b = p.d = type, p.layout = static_cast<kernels::layout>(key.layout), p.epilogue = key.epilogue;
    cxx.push_back(p);
    kernels_problem q = KERNELS_PROBLEM;
    q.m = key.m, q.n = key.n, q.k = key.k, q.a = q.b = q.d = key.type, q.layout = key.layout,
    q.epilogue = key.epilogue;
    c.push_back(q);
  }
  tell("C++", [&](size_t i) { return kernels::find(cxx[i]) != nullptr; });
  tell("C", [&](size_t i) { return kernels_find(&c[i]) != nullptr; });
}
