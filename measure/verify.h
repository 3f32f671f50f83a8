// Whether a kernel computes the right thing and nothing else: every kernel call that verification makes.
#pragma once

#include "measure/buffers.h"
#include "measure/loader.h"
#include "measure/reference.h"

#include <functional>
#include <memory>

namespace deepgen {

/// What one call, or one set of calls that share out the grid, must get right.
struct Case {
  const char* name;
  bool padded; ///< odd leading dimensions, gaps between batch entries, bases aligned to an element only
  Guard guard;
  double alpha, beta;
  enum C { absent, separate, in_place } c; ///< absent: C is null, and beta 0; else with beta 0 C holds NaN
  enum Cut {
    whole,
    rows,
    columns,
    entries
  } cut; ///< how the grid is shared out among calls, as threads would
  enum Matrix { none, residual, multiplier } in_d = none; ///< which operand of the epilogue is D itself
  Broadcast broadcast = {};
};

/// Problems up to 2 GFLOP and 16 M elements get every case that their batch and epilogue allow. Larger ones
/// get the dense call only: their leading dimensions, scalars and splits are covered by the same config on
/// the template's awkward shape.
std::vector<Case> cases_for(const Gemm&);

struct Verdict {
  std::string status = "ok", detail; ///< "ok", "wrong", "out_of_bounds"
  double error = 0;                  ///< largest error relative to its tolerance
};

/// Operands and expected results of every case of one problem, computed once and shared by all candidates:
/// workers see them through fork(2). Inputs are read-only, so that a write to one is a fault.
class CaseSet {
public:
  CaseSet(const Gemm&, uint64_t seed);
  CaseSet(const CaseSet&) = delete;

  const Gemm& problem() const { return problem_; }
  const Inputs& inputs() const { return inputs_; }
  /// Runs `kernel` through all cases; `before` is called with the case's name ahead of each.
  Verdict verify(const LoadedKernel& kernel, int64_t workspace,
                 const std::function<void(const std::string&)>& before);

private:
  struct Prepared {
    Case what;
    GuardedMatrix a, b, c, d;
    std::vector<GuardedMatrix> operands; ///< of the epilogue
    CallBuffers buffers;
    Expected expected;
  };
  Prepared prepare(const Case&) const;
  void prepare_epilogue(Prepared&) const;
  Verdict run(Prepared&, const LoadedKernel&, int64_t workspace) const;

  Gemm problem_;
  Inputs inputs_;
  Reference reference_;
  std::vector<std::unique_ptr<Prepared>> cases_;
};

/// The ranges of `cut`, last first: no call may depend on another having run.
std::vector<TileRanges> cut_ranges(const TileRanges& full, Case::Cut cut);

/// Bytes that a CaseSet takes, or more.
double case_bytes(const Gemm&);

/// Seconds after which one verified call counts as hanging: `base`, or 20 times what a slow kernel needs.
double call_limit(const Problem&, double base);

} // namespace deepgen
