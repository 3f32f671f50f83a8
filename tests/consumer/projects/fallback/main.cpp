#include <kernels.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

void say(const char* name, const deepgen_function* f) {
  const char* state = deepgen_selected_fallback(f);
  std::printf("%s: %s\n%s\n", name, deepgen_selected_config(f), state ? state : "no fallback");
}

bool verified(const deepgen_function* f) {
  char text[300];
  const deepgen_status status = deepgen_verify(f, text, sizeof text);
  if (status != DEEPGEN_OK) std::printf("%s: %s\n", deepgen_status_string(status), text);
  return status == DEEPGEN_OK;
}

} // namespace

int main() {
  std::vector<double> a(17 * 23), b(23 * 9), d(17 * 9);
  for (size_t i = 0; i < a.size(); ++i) a[i] = double(i % 7) - 3;
  for (size_t i = 0; i < b.size(); ++i) b[i] = double(i % 5) - 2;
  if (kernels::down({a.data(), 17, 23}, {b.data(), 23, 9}, {d.data(), 17, 9}) != DEEPGEN_OK) return 1;
  double sum = 0;
  for (int k = 0; k < 23; ++k) sum += a[16 * 23 + k] * b[k * 9 + 8];
  if (std::fabs(d[16 * 9 + 8] - sum) > 1e-9) return 2;
  say("up", kernels_up_function());
  say("down", kernels_down_function());
  if (!verified(kernels_up_function()) || !verified(kernels_down_function())) return 3;
  std::puts("ok");
}
