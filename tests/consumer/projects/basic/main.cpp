// Checks both functions of the library against a plain loop; small whole numbers make the sums exact.
#include <kernels.h>

#include <algorithm>
#include <cstdio>
#include <vector>

template <typename T>
std::vector<T> numbers(int count, int period) {
  std::vector<T> values(count);
  for (int i = 0; i < count; ++i) values[i] = T(i % period - period / 2);
  return values;
}

template <typename T, typename Reference>
int check(const char* name, int rows, int columns, const T* d, Reference reference) {
  for (int m = 0; m < rows; ++m)
    for (int n = 0; n < columns; ++n)
      if (d[m * columns + n] != reference(m, n)) {
        std::printf("%s[%d,%d] = %g, not %g\n", name, m, n, double(d[m * columns + n]),
                    double(reference(m, n)));
        return 1;
      }
  return 0;
}

int up() {
  auto a = numbers<float>(24 * 32, 7), b = numbers<float>(40 * 32, 5), bias = numbers<float>(40, 11);
  std::vector<float> d(24 * 40);
  if (kernels_up(a.data(), b.data(), bias.data(), d.data()) != DEEPGEN_OK) return std::puts("up failed"), 1;
  return check("up", 24, 40, d.data(), [&](int m, int n) {
    float sum = bias[n];
    for (int k = 0; k < 32; ++k) sum += a[m * 32 + k] * b[n * 32 + k];
    return std::max(sum, 0.0f);
  });
}

int down() {
  auto a = numbers<double>(17 * 23, 7), b = numbers<double>(23 * 9, 5);
  std::vector<double> d(17 * 9);
  if (kernels::down(a.data(), b.data(), d.data()) != DEEPGEN_OK) return std::puts("down failed"), 1;
  return check("down", 17, 9, d.data(), [&](int m, int n) {
    double sum = 0;
    for (int k = 0; k < 23; ++k) sum += a[m * 23 + k] * b[k * 9 + n];
    return sum;
  });
}

int main() {
  if (up() || down()) return 1;
  std::printf("ok\nup: %s\n", deepgen_selected_config(kernels_up_function()));
}
