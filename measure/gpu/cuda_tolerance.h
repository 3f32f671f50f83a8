// How far from the f64 reference a correct GPU kernel may be.
//
// The operands are exact in their types, uniform in [-1, 1), independent and without bias, so partial sums of
// k products are about sqrt(k)/3 and |a_i| |b_j| (2-norms) is about K/3. What is bounded, as a multiple of
// |a_i| |b_j|:
//   f32, f16, bf16: u (8 + sqrt K), u = 2^-24. Products of 16-bit inputs are exact in f32. Sums rounded to
//   nearest have an
//     error of about 0.4 u |a||b| (random walk); tensor cores align the addends of a step of 4 to 16 products
//     to the largest and cut off what lies below 2^-23 of it (Fasi, Higham, Mikaitis and Pranesh, "Numerical
//     behavior of NVIDIA tensor cores", PeerJ CS 2021), towards zero and so with a drift of u sum |s_k|, for
//     steps of 4 about 0.13 sqrt(K) u |a||b|.
//   f64: the same with u = 2^-53, twice, since the reference's own error is as large.
//   e4m3, e5m2: 2^-14 (8 + sqrt(K) / 8): tensor cores of some GPUs keep about 14 bits of the sums of these
//   products
//     (DeepSeek-V3 technical report, 3.3.2, for Hopper's wgmma); the drift for steps of 16 is about
//     sqrt(K)/30.
//   tf32: as f32, and min(2^-9, 2^-10 8 / sqrt K) for the inputs, of which each may be cut to 10 bits of
//   fraction: the
//     products have a relative error of at most 2^-9, typically 2^-10, and random signs.
//   f16 on gfx90a, whose matrix and dot instructions take subnormal operands for zeros: 2^-10 more, absolute.
//   One in 16384 operands is subnormal; the sum changes by less than 2^-14 for it, and four of them in one
//   sum are four times as much with everything that alpha and the epilogue's scales make of it. Sums of K
//   above 200 have as much room in their own bound; with fewer products, one of them alone would be a fault.
//   i8 -> i32: exact. i8 otherwise: 4 u, for the conversion of the sum to f32.
// Times |alpha|; then + 8 u |beta c|, each step of the epilogue as in reference.h (bias, residual: 2 u (|x| +
// |y|); scales, multiply: + 2 u |x|; functions: their slope, + 32 u), and the rounding to D: half a unit in
// the last place (f16 2^-11, bf16 2^-8, f32 2^-24, relative), for i8 1/2.
//
// A lost product changes an element by 1/4 on average and by nearly 1 somewhere in a matrix. With D in f32 it
// is thus noticed up to K of about 100000 (f32, f16, bf16), 50000 (tf32), 3000 (fp8). In 16 bits the rounding
// of D comes on top, sqrt(K)/3 2^-11 or 2^-8: still below 1 up to K of 60000 for bf16. A row or column in the
// wrong place changes elements by sqrt(K)/2 and is noticed at every K.
#pragma once

#include "base/problem/gemm.h"
#include "measure/gpu/toolbox/cuda_parameters.h"

namespace deepgen::cuda {

/// `arch`: what computes; only one of AMD's changes anything.
Tolerance tolerance_of(const Gemm&, const std::string& arch);

} // namespace deepgen::cuda
