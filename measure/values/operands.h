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
  const void* packed_b = nullptr; ///< B once more, where the problem has it packed: from the panels on
  struct Step {
    const void* data = nullptr;
    int64_t ld = 0, stride = 0; ///< of matrices
  };
  std::array<Step, epilogue_op_count> steps; ///< of the epilogue, by EpilogueOp
  Step& step(EpilogueOp op) { return steps[size_t(op)]; }
  const Step& step(EpilogueOp op) const { return steps[size_t(op)]; }
  double clamp_low = 0, clamp_high = 0;
};

/// As kernels take them; alpha, beta and the bounds of clamp in the scale type. The problem has the sizes of
/// the call.
SlotValues values_of(const CallBuffers&, const Gemm&);

/// An operand that lies in memory.
struct StepOperand : Operand {
  EpilogueOp op;

  /// Where a dense operand has the value for D[entry][m, n].
  int64_t index(int64_t entry, int64_t m, int64_t n) const;
};

/// Those of the problem's epilogue, in its order.
std::vector<StepOperand> operands_of(const Gemm& p);

/// In which the epilogue of a GEMM computes: f32 or f64.
Type computes_in(const Gemm&);
/// One step in f64; `y` is its operand's value, low and high the bounds of clamp.
double apply_step(EpilogueOp op, double x, double y, double low, double high);
/// The tolerance of what a step makes of x, which has the tolerance `before`: see reference.h. `type`: in
/// which it computes, f32 or f64; `y` its operand's value, `result` the step's.
double tolerance_after(EpilogueOp op, Type type, double x, double y, double result, double before);
double unit_roundoff(Type);
double smallest_normal(Type);
/// Scales are never near zero: what they multiply must show.
bool is_scale(EpilogueOp);

} // namespace deepgen
