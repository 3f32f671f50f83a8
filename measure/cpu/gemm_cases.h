// Every kernel call that verification makes of a GEMM.
#pragma once

#include "measure/values/buffers.h"
#include "measure/values/operands.h"
#include "measure/values/reference.h"
#include "measure/values/verify.h"

#include <memory>

namespace deepgen {

/// What one call, or one set of calls that share out the grid, must get right.
struct Case {
  const char* name;
  bool padded; ///< odd leading dimensions, gaps between batch entries, bases aligned to an element only
  Guard guard;
  double alpha, beta;
  enum C { absent, separate, in_place } c; ///< absent: C is null, and beta 0; else with beta 0 C holds NaN
  GridCut cut;
  enum Matrix { none, residual, multiplier } in_d = none; ///< which operand of the epilogue is D itself
  Broadcast broadcast = {};
};

/// Problems up to 2 GFLOP and 16 M elements get every case that their batch and epilogue allow. Larger ones
/// get the dense call only: their leading dimensions, scalars and splits are covered by the same config on
/// the template's awkward shape.
std::vector<Case> cases_for(const Gemm&);

class GemmCases : public CaseSet {
public:
  GemmCases(const Gemm&, uint64_t seed);

  Problem problem() const override { return problem_; }
  const Inputs& inputs() const { return inputs_; }
  Verdict verify(const LoadedKernel& kernel, int64_t workspace,
                 const std::function<void(const std::string&)>& before) override;

private:
  struct Prepared {
    Case what;
    GuardedMatrix a, b, c, d;
    std::vector<GuardedMatrix> operands; ///< of the epilogue
    CallBuffers buffers;
    Expected expected;
    std::optional<GuardedMatrix> packed_b = {};
  };
  Prepared prepare(const Case&) const;
  void prepare_epilogue(Prepared&) const;
  void prepare_packed(Prepared&) const;
  Verdict run(Prepared&, const LoadedKernel&, GuardedWorkspace&) const;

  Gemm problem_;
  Inputs inputs_;
  Reference reference_;
  std::vector<std::unique_ptr<Prepared>> cases_;
};

/// Bytes that a GemmCases takes, or more.
double case_bytes(const Gemm&);

} // namespace deepgen
