// The cases of a batch invariant GEMM: those of the same problem without that, and calls whose rows must be
// equal bit by bit.
#pragma once

#include "measure/cpu/subject.h"
#include "measure/values/inputs.h"
#include "measure/values/invariant_rows.h"
#include "measure/values/operands.h"

namespace deepgen {

class InvariantCases : public CaseSet {
public:
  /// `cases`: the others.
  InvariantCases(const Gemm&, uint64_t seed, std::unique_ptr<CaseSet> cases);

  Problem problem() const override { return problem_; }
  Verdict verify(const LoadedKernel& kernel, int64_t workspace,
                 const std::function<void(const std::string&)>& before) override;

private:
  struct Calls {
    InvariantCalls what;
    Gemm largest; ///< of them
    Inputs inputs;
    PageBuffer d;        ///< made ahead of the workers, whose memory is limited
    PageBuffer packed_b; ///< of a problem with that
  };
  struct Case;
  std::string run(const Calls&, const Sizes&, const Case&, const LoadedKernel&, void* workspace,
                  EqualRows& rows) const;
  CallBuffers buffers(const Calls&, const Case&) const;

  Gemm problem_;
  std::unique_ptr<CaseSet> cases_;
  std::vector<Calls> calls_;
};

/// Bytes that it takes beside those of the other cases, or more.
double invariant_case_bytes(const Gemm&);

} // namespace deepgen
