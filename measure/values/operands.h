// The operands of a GEMM and its epilogue as verification and timing pass them, and what its steps compute.
#pragma once

#include "base/problem/signature.h"
#include "measure/values/loader.h"

namespace deepgen {

/// What a call of a GEMM gets: typed as the runtime passes it, sizes in elements.
struct CallBuffers {
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
  double alpha = 1, beta = 0;
  void* workspace = nullptr;
  // Of the epilogue.
  const void *bias_row = nullptr, *residual = nullptr, *multiplier = nullptr;
  int64_t ld_residual = 0, stride_residual = 0, ld_multiplier = 0, stride_multiplier = 0;
  const void *scale_a = nullptr, *scale_b = nullptr, *scale_d = nullptr, *scale_row = nullptr,
             *scale_col = nullptr;
  double clamp_low = 0, clamp_high = 0;
};

/// As kernels take them; alpha, beta and the bounds of clamp in the scale type.
SlotValues values_of(const CallBuffers&, const Gemm&);

/// An operand that lies in memory, with its place in CallBuffers.
struct StepOperand : Operand {
  EpilogueOp op;
  const void* CallBuffers::* data;
  int64_t CallBuffers::* ld; ///< of matrices, else null
  int64_t CallBuffers::* batch_stride;

  /// Where a dense operand has the value for D[entry][m, n].
  int64_t index(int64_t entry, int64_t m, int64_t n) const;
};

/// Those of the problem's epilogue, in its order.
std::vector<StepOperand> operands_of(const Gemm& p);

/// One step in f64; `y` is its operand's value, low and high the bounds of clamp.
double apply_step(EpilogueOp op, double x, double y, double low, double high);

} // namespace deepgen
