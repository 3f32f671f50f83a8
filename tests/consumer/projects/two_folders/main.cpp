// Two libraries in one program: B transposed for one, as it is for the other.
#include <one.h>
#include <two.h>

#include <cstdio>

int main() {
  float a[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, b[16], d1[16], d2[16];
  for (int i = 0; i < 16; ++i) b[i] = float(i);
  if (one_one(a, b, d1) || two_two(a, b, d2)) return std::puts("failed"), 1;
  for (int m = 0; m < 4; ++m)
    for (int n = 0; n < 4; ++n)
      if (d1[m * 4 + n] != b[n * 4 + m] || d2[m * 4 + n] != b[m * 4 + n]) return std::puts("wrong"), 1;
  std::puts("ok");
}
