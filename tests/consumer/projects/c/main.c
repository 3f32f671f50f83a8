/* Both C entry points against a plain loop; small whole numbers make the sums exact. */
#include <kernels.h>

#include <omp.h>
#include <stdio.h>

enum { M = 3, N = 5, K = 4 };

static int wrong(const float* a, const float* b, const float* bias, const float* d, float alpha) {
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += a[m * K + k] * b[n * K + k];
      if (d[m * N + n] != alpha * sum + bias[n]) return printf("d[%d,%d] = %g\n", m, n, d[m * N + n]);
    }
  return 0;
}

/* relu(alpha a bg^T) * (alpha a bu^T): bg is the first half of b, bu the second. */
static int wrong_gate(const float* a, const float* b, const float* d, float alpha) {
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      float gate = 0, up = 0;
      for (int k = 0; k < K; ++k)
        gate += a[m * K + k] * b[n * K + k], up += a[m * K + k] * b[(N + n) * K + k];
      if (d[m * N + n] != (gate > 0 ? alpha * gate : 0) * alpha * up)
        return printf("gated d[%d,%d] = %g\n", m, n, d[m * N + n]);
    }
  return 0;
}

/* The hook of docs/calling.md: the program's own threads compute. */
static void omp_for(void* user, int count, deepgen_task task, void* context) {
  int* calls = user;
  ++*calls;
#pragma omp parallel for schedule(static, 1)
  for (int i = 0; i < count; ++i) task(context, i);
}

static int wrong_on_own_threads(void) {
  static float a[KERNELS_LARGE_M * KERNELS_LARGE_K], b[KERNELS_LARGE_N * KERNELS_LARGE_K],
      own[KERNELS_LARGE_M * KERNELS_LARGE_N], pool[KERNELS_LARGE_M * KERNELS_LARGE_N];
  int calls = 0;
  for (int i = 0; i < KERNELS_LARGE_M * KERNELS_LARGE_K; ++i)
    a[i] = (float)(i % 5) / 3, b[i] = (float)(i % 7) / 11;
  if (sizeof a != KERNELS_LARGE_BYTES_A || sizeof own != KERNELS_LARGE_BYTES_D) return puts("other sizes"), 1;
  if (kernels_large(a, b, pool) != DEEPGEN_OK) return 1;
  if (deepgen_set_parallel_for(omp_for, &calls, omp_get_max_threads() + 1) != DEEPGEN_OK) return 1;
  if (kernels_large(a, b, own) != DEEPGEN_OK || calls != 1) return puts("the hook was not called"), 1;
  for (int i = 0; i < KERNELS_LARGE_M * KERNELS_LARGE_N; ++i)
    if (own[i] != pool[i]) return printf("own[%d] = %g, not %g\n", i, own[i], pool[i]);
  return deepgen_set_parallel_for(NULL, NULL, 0) != DEEPGEN_OK;
}

int main(void) {
  float a[M * K], b[2 * N * K], bias[N], d[M * N];
  for (int i = 0; i < M * K; ++i) a[i] = (float)(i % 5 - 2);
  for (int i = 0; i < 2 * N * K; ++i) b[i] = (float)(i % 7 - 3);
  for (int i = 0; i < N; ++i) bias[i] = (float)(10 * i);
  deepgen_status status = kernels_up(a, b, bias, d);
  if (status != DEEPGEN_OK) return puts(deepgen_status_string(status)), 1;
  if (wrong(a, b, bias, d, 1)) return 1;

  deepgen_gemm_args args = DEEPGEN_GEMM_ARGS;
  args.a = a;
  args.b = b;
  args.bias = bias;
  args.d = d;
  args.alpha = 2;
  status = kernels_up_run(&args);
  if (status != DEEPGEN_OK) return puts(deepgen_status_string(status)), 1;
  if (wrong(a, b, bias, d, 2)) return 1;

  args.bias = NULL;
  if (kernels_glu(a, b, d) != DEEPGEN_OK || wrong_gate(a, b, d, 1)) return 1;
  if (kernels_glu_run(&args) != DEEPGEN_OK || wrong_gate(a, b, d, 2)) return 1;

  if (wrong_on_own_threads()) return 1;

  args.d = NULL;
  if (kernels_up_run(&args) == DEEPGEN_OK) return puts("a null pointer was taken"), 1;
  printf("ok, tuned: %s\n", deepgen_selected_config(kernels_up_function()));
  return 0;
}
