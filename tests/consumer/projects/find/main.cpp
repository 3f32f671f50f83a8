// The same look-up in C++, which gives functions.
#include <kernels_find.h>
#include <more_find.h>
#include <ranged_find.h>

#include <cstdio>

int main() {
  lib::problem p{8, 24, 16};
  lib::rows_problem r{8, 24, lib::type::f32, lib::type::f32, "softmax"};
  bool ok = lib::find(p) == lib_m8_n24_k16_f32_nt_run;
  p.epilogue = "bias+gelu";
  ok = ok && lib::find(p) == lib_m8_n24_k16_f32_nt_bias_gelu_run;
  p.epilogue = "gelu";
  ok = ok && !lib::find(p) && lib::find(r);
  r.options = "scale";
  ok = ok && !lib::find(r);
  lib_problem c = LIB_PROBLEM;
  c.m = 8, c.n = 24, c.k = 16;
  ok = ok && lib_find(&c) == lib_m8_n24_k16_f32_nt_function() && more::find(more::problem{8, 24, 16});
  ok = ok && ranged::find(ranged::problem{5, 24, 16}) == ranged_m2to8_n24_k16_f32_nt_run &&
       !ranged::find(ranged::problem{9, 24, 16});
  std::puts(ok ? "ok" : "wrong");
  return !ok;
}
