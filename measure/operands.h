// The operands of an epilogue as verification and timing pass them, and what its steps compute.
#pragma once

#include "base/signature.h"
#include "measure/loader.h"

namespace deepgen {

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
