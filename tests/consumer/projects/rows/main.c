/* The functions of rows through their C interface, against plain loops. */
#include <kernels.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { M = KERNELS_NORM_M, N = KERNELS_NORM_N };

static int wrong_norm(const float* x, const float* residual, const float* scale, const float* d,
                      const float* sum) {
  for (int m = 0; m < M; ++m) {
    double square = 0;
    for (int n = 0; n < N; ++n) {
      const float z = x[m * N + n] + residual[m * N + n];
      if (sum[m * N + n] != z) return printf("sum[%d,%d] = %g\n", m, n, sum[m * N + n]);
      square += (double)z * z / N;
    }
    for (int n = 0; n < N; ++n) {
      const double wanted = sum[m * N + n] / sqrt(square + 1e-5) * scale[n];
      if (fabs(d[m * N + n] - wanted) > 1e-5)
        return printf("d[%d,%d] = %g, not %g\n", m, n, d[m * N + n], wanted);
    }
  }
  return 0;
}

static int verified(const struct deepgen_function* function) {
  char text[200];
  const deepgen_status status = deepgen_verify(function, text, sizeof text);
  printf("%s; %s; %s\n", deepgen_selected_config(function), text, deepgen_status_string(status));
  return status == DEEPGEN_OK;
}

int main(void) {
  static float x[M * N], residual[M * N], scale[N], d[M * N], sum[M * N], in_place[M * N];
  for (int i = 0; i < M * N; ++i) x[i] = (float)(i % 13 - 6) / 4, residual[i] = (float)(i % 7) / 2;
  for (int n = 0; n < N; ++n) scale[n] = (float)(n % 3 + 1);
  if (sizeof x != KERNELS_NORM_BYTES_X || KERNELS_NORM_LDX != N ||
      KERNELS_QUANTISED_BYTES_ROW_SCALES != 4 * 512)
    return puts("other sizes"), 1;
  deepgen_status status = kernels_norm(x, residual, scale, 1e-5, d, sum);
  if (status != DEEPGEN_OK) return puts(deepgen_status_string(status)), 1;
  if (wrong_norm(x, residual, scale, d, sum)) return 1;

  deepgen_rows_args args = DEEPGEN_ROWS_ARGS; /* D in X's place, the sum in the residual's */
  memcpy(in_place, x, sizeof x);
  memcpy(sum, residual, sizeof sum);
  args.x = args.d = in_place;
  args.residual = args.residual_out = sum;
  args.scale = scale;
  status = kernels_norm_run(&args);
  if (status != DEEPGEN_OK) return puts(deepgen_status_string(status)), 1;
  if (wrong_norm(x, residual, scale, in_place, sum)) return 1;
  args.residual_out = in_place;
  if (kernels_norm_run(&args) != DEEPGEN_ERROR_OVERLAP) return puts("two outputs in one place were taken"), 1;
  args.residual_out = NULL;
  if (kernels_norm_run(&args) != DEEPGEN_ERROR_NULL) return puts("a null pointer was taken"), 1;

  for (int threads = 1; threads <= 3; threads += 2) {
    deepgen_set_num_threads(threads);
    if (!verified(kernels_norm_function()) || !verified(kernels_up_function()) ||
        !verified(kernels_probabilities_function()) || !verified(kernels_quantised_function()))
      return 1;
  }
  puts("ok");
  return 0;
}
