// What a core can do at most: independent fused products in registers, and nothing else.
#include "compositions.h"

namespace {

typedef float Four __attribute__((vector_size(16)));
typedef float Eight __attribute__((vector_size(32)));
typedef float Sixteen __attribute__((vector_size(64)));

volatile float sink;

/// `Sums` vectors: as many as hide a product's latency on two ports. always_inline, so that each caller's
/// instructions are those of its target.
template <typename Vector, int Sums>
inline __attribute__((always_inline)) void products() {
  constexpr int kLanes = int(sizeof(Vector) / sizeof(float));
  constexpr auto kSteps = int64_t(kPeakOperations / 2 / kLanes / Sums);
  Vector sums[Sums];
  const Vector x = Vector{} + 0.999f, y = Vector{} + 1e-3f;
#pragma GCC unroll 16
  for (int j = 0; j < Sums; ++j) sums[j] = y + float(j); // all others: equal ones would be computed once
  for (int64_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < Sums; ++j) sums[j] = sums[j] * x + y;
  Vector total = {};
#pragma GCC unroll 16
  for (int j = 0; j < Sums; ++j) total += sums[j];
  sink = total[0];
}

__attribute__((target("avx512f"))) void wide() { products<Sixteen, 16>(); }
__attribute__((target("avx2,fma"))) void middle() { products<Eight, 8>(); }
void narrow() { products<Four, 8>(); }

} // namespace

Arm peak_arm() {
  if (__builtin_cpu_supports("avx512f")) return {"peak", false, wide};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"peak", false, middle};
  return {"peak", false, narrow};
}
