#include <kernels.h>
#include <stdio.h>

static void say(const char* name, const struct deepgen_function* f) {
  const char* state = deepgen_selected_fallback(f);
  printf("%s: %s\n%s\n", name, deepgen_selected_config(f), state ? state : "no fallback");
}

int main(void) {
  static double a[17 * 23], b[23 * 9], d[17 * 9];
  deepgen_gemm_args args = DEEPGEN_GEMM_ARGS;
  int i;
  for (i = 0; i < 17 * 23; ++i) a[i] = i % 7 - 3;
  for (i = 0; i < 23 * 9; ++i) b[i] = i % 5 - 2;
  args.a = a, args.b = b, args.d = d;
  if (kernels_down_run(&args) != DEEPGEN_OK) return 1;
  {
    double sum = 0;
    for (i = 0; i < 23; ++i) sum += a[16 * 23 + i] * b[i * 9 + 8];
    if (d[16 * 9 + 8] - sum > 1e-9 || sum - d[16 * 9 + 8] > 1e-9) return 2;
  }
  say("up", kernels_up_function());
  say("down", kernels_down_function());
  puts("ok");
  return 0;
}
