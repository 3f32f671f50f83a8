// A library tuned by the tools of the same build gives right results.
#include <intree.h>

#include <cstdio>

int main() {
  float a[5 * 7], b[6 * 7], d[5 * 6];
  for (int i = 0; i < 35; ++i) a[i] = float(i % 5 - 2);
  for (int i = 0; i < 42; ++i) b[i] = float(i % 7 - 3);
  if (deepgen_status status = intree::intree(a, b, d)) return std::puts(deepgen_status_string(status)), 1;
  for (int m = 0; m < 5; ++m)
    for (int n = 0; n < 6; ++n) {
      float sum = 0;
      for (int k = 0; k < 7; ++k) sum += a[m * 7 + k] * b[n * 7 + k];
      if (d[m * 6 + n] != sum)
        return std::printf("d[%d,%d] = %g, not %g\n", m, n, double(d[m * 6 + n]), double(sum)), 1;
    }
}
