/* Finds GEMMs and rows, calls one of each, and finds no others. */
#include <kernels_find.h>
#include <more_find.h>
#include <ranged_find.h>

#include <stdio.h>

#define CHECK(condition)                                                                                     \
  if (!(condition)) {                                                                                        \
    printf("line %d: %s\n", __LINE__, #condition);                                                           \
    return 1;                                                                                                \
  }

/* Any M from 2 to 8 is found, at which the call is right; what is outside is not. */
static int ranges(float* x, float* w, float* y) {
  ranged_problem p = RANGED_PROBLEM;
  deepgen_gemm_args args = DEEPGEN_GEMM_ARGS;
  const struct deepgen_function* found;
  p.n = 24, p.k = 16;
  args.a = x, args.b = w, args.d = y;
  for (p.m = 2; p.m <= 8; ++p.m) {
    found = ranged_find(&p);
    CHECK(found && found == ranged_m2to8_n24_k16_f32_nt_function());
    y[24 * p.m - 1] = 0;
    if (p.m < 8) y[24 * p.m] = -1;
    args.m = p.m;
    CHECK(deepgen_run_gemm(found, &args) == DEEPGEN_OK && y[24 * p.m - 1] == 8 &&
          (p.m == 8 || y[24 * p.m] == -1));
  }
  CHECK(!ranged_find(&p));
  p.m = 1;
  CHECK(!ranged_find(&p));
  p.m = 0; /* calls without rows do nothing, and are legal */
  CHECK(ranged_find(&p));
  p.m = 4, p.k = 17;
  CHECK(!ranged_find(&p));
  p.m = 8, p.k = 24, p.n = 32;
  CHECK(ranged_find(&p) == ranged_m8_n32_k24_f32_nt_function());
  p.m = 7;
  CHECK(!ranged_find(&p));
  p.m = 5, p.k = 16, p.n = 24, p.a = p.b = RANGED_TYPE_BF16;
  CHECK(ranged_find(&p) == ranged_m5_n24_k16_bf16_f32_nt_function());
  p.m = 7;
  CHECK(!ranged_find(&p));
  return 0;
}

int main(void) {
  static float x[8 * 24], w[24 * 24], y[8 * 24];
  lib_problem p = LIB_PROBLEM;
  lib_rows_problem r = {8, 24, LIB_TYPE_F32, LIB_TYPE_F32, "softmax", NULL};
  deepgen_gemm_args args = DEEPGEN_GEMM_ARGS;
  deepgen_rows_args rows = DEEPGEN_ROWS_ARGS;
  const struct deepgen_function* found;
  int i;
  for (i = 0; i < 8 * 24; ++i) x[i] = 1;
  for (i = 0; i < 24 * 24; ++i) w[i] = 0.5f;

  p.m = 8, p.n = 24, p.k = 16;
  found = lib_find(&p);
  CHECK(found && found == lib_m8_n24_k16_f32_nt_function());
  args.a = x, args.b = w, args.d = y;
  CHECK(deepgen_run_gemm(found, &args) == DEEPGEN_OK && y[0] == 8 && y[8 * 24 - 1] == 8);
  p.epilogue = NULL;
  CHECK(lib_find(&p) == found);
  p.epilogue = "bias+gelu";
  CHECK(lib_find(&p) == lib_m8_n24_k16_f32_nt_bias_gelu_function());
  p.epilogue = "bias";
  CHECK(!lib_find(&p));
  p.epilogue = "", p.a = p.b = p.d = LIB_TYPE_F64, p.layout = LIB_LAYOUT_TN, p.batch = 3;
  CHECK(lib_find(&p) == lib_m8_n24_k16_b3_f64_tn_function());
  p.batch = 2;
  CHECK(!lib_find(&p));
  p.batch = 3, p.layout = (lib_layout)77;
  CHECK(!lib_find(&p) && !lib_find(NULL));

  found = lib_find_rows(&r);
  CHECK(found);
  rows.x = x, rows.d = y;
  CHECK(deepgen_run_rows(found, &rows) == DEEPGEN_OK && y[0] > 0.0416f && y[0] < 0.0417f);
  r.kind = "rms_norm", r.options = "residual+output_residual+scale";
  CHECK(lib_find_rows(&r) && lib_find_rows(&r) != found);
  r.options = "scale";
  CHECK(!lib_find_rows(&r) && !lib_find_rows(NULL));
  r.kind = NULL;
  CHECK(!lib_find_rows(&r));
  CHECK(more_find(
      &(more_problem){8, 24, 16, 1, 0, MORE_TYPE_F32, MORE_TYPE_F32, MORE_TYPE_F32, MORE_LAYOUT_NT, "", ""}));
  if (ranges(x, w, y)) return 1;
  printf("ok\n");
  return 0;
}
