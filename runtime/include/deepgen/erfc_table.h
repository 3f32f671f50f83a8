/* A function that kernels and the runtime compute by one polynomial. */
#ifndef DEEPGEN_ERFC_TABLE_H
#define DEEPGEN_ERFC_TABLE_H

/* erfc(z) exp(z^2) for z >= 0 in f64, as a polynomial in t = (z - c) / (z + c), by ascending powers: a
   truncated Chebyshev series, computed with 70 digits by scripts/fit_erfc.py. Its largest relative error,
   evaluated in f64, is 9.8e-16. */
#define DEEPGEN_ERFC_F64_CENTRE 4
/* clang-format off */
#define DEEPGEN_ERFC_F64 \
  0.13699945762506138, -0.25906804876017253, 0.2187196789182644, -0.16425781669723072, \
  0.10896317739892815, -0.06310781564179457, 0.031299056518247596, -0.012843946006388787, \
  0.0040602636283182825, -0.0007991269820253035, -2.1761748035718732e-05, 7.898387349464188e-05, \
  -2.2555929261440034e-05, -1.9050222714817373e-06, 2.9442671004526366e-06, -4.056635568059823e-07, \
  -2.83616680306096e-07, 9.286877001125978e-08, 2.484346620100743e-08, -1.304361065835857e-08, \
  -2.02554257660657e-09, 1.0747862261442003e-09, 1.2013356305627165e-10
/* clang-format on */

#endif
