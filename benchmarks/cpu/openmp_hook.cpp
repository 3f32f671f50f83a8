// What OpenMP's spinning threads cost a call of a tuned library that follows a parallel region, without and
// with the hook deepgen_set_parallel_for(); see docs/calling.md, "Threads of your own". Two arms in one
// process, in turns; a sample is the wall-clock time of one call right behind a parallel region.
//
//   openmp_hook [rounds]        default: 301; OMP_WAIT_POLICY and OMP_NUM_THREADS are OpenMP's own
#include "suite.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void omp_for(void*, int count, deepgen_task task, void* context) {
#pragma omp parallel for schedule(static, 1)
  for (int i = 0; i < count; ++i) task(context, i);
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double quantile(std::vector<double> x, double q) {
  std::sort(x.begin(), x.end());
  return x[size_t(q * double(x.size() - 1))];
}

} // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 301, threads = omp_get_max_threads();
  std::vector<float> a(size_t(suite::f_proj_sizes::m) * suite::f_proj_sizes::k, 1),
      b(size_t(suite::f_proj_sizes::k) * suite::f_proj_sizes::n, 1),
      d(size_t(suite::f_proj_sizes::m) * suite::f_proj_sizes::n);
  deepgen_set_num_threads(threads);
  std::vector<double> behind[2];
  for (int round = 0; round < rounds; ++round)
    for (int hook : {round % 2, 1 - round % 2}) {
      deepgen_set_parallel_for(hook ? omp_for : nullptr, nullptr, threads);
      if (suite_f_proj(a.data(), b.data(), d.data())) return 1;
#pragma omp parallel for
      for (size_t i = 0; i < d.size(); ++i) d[i] += 1;
      const double begin = seconds();
      if (suite_f_proj(a.data(), b.data(), d.data())) return 1;
      behind[hook].push_back(seconds() - begin);
    }
  for (int hook : {0, 1})
    std::printf("%d threads, %s: %.1f us [%.1f, %.1f]\n", threads, hook ? "with the hook" : "the pool     ",
                quantile(behind[hook], 0.5) * 1e6, quantile(behind[hook], 0.25) * 1e6,
                quantile(behind[hook], 0.75) * 1e6);
  std::printf("pool / hook: %.3f\n", quantile(behind[0], 0.5) / quantile(behind[1], 0.5));
}
