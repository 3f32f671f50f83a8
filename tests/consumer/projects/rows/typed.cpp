// The typed C++ functions, and what the compiler can check.
#include <kernels.h>

#include <cmath>
#include <cstdio>
#include <vector>

static_assert(kernels::norm_sizes::m == 24 && kernels::norm_sizes::bytes_x == 24 * 100 * sizeof(float));

int main() {
  std::vector<float> x(24 * 50), d(24 * 40);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 11) / 3;
  if (kernels::probabilities({x.data(), 24, 40, 50}, {d.data(), 24, 40}) != DEEPGEN_OK)
    return 1; // gaps behind rows
  for (int m = 0; m < 24; ++m) {
    double sum = 0;
    for (int n = 0; n < 40; ++n) sum += std::exp(double(x[size_t(m * 50 + n)]));
    for (int n = 0; n < 40; ++n)
      if (std::fabs(d[size_t(m * 40 + n)] - std::exp(double(x[size_t(m * 50 + n)])) / sum) > 1e-6)
        return std::printf("d[%d, %d] = %g\n", m, n, double(d[size_t(m * 40 + n)])), 1;
  }
  if (kernels::probabilities({x.data(), 24, 41, 50}, {d.data(), 24, 40}) != DEEPGEN_ERROR_SIZE) return 1;
  deepgen_rows_args args;
  args.x = x.data(), args.ldx = 50, args.d = d.data();
  if (kernels::probabilities(args) != DEEPGEN_OK) return 1;
  std::puts("ok");
  return 0;
}
