// The cases of a GEMM with ranges: those of several sizes, with one kernel.
#pragma once

#include "measure/cpu/gemm_cases.h"

namespace deepgen {

class RangedCases : public CaseSet {
public:
  RangedCases(const Gemm&, uint64_t seed);

  Problem problem() const override { return problem_; }
  Verdict verify(const LoadedKernel& kernel, int64_t workspace,
                 const std::function<void(const std::string&)>& before) override;

private:
  Gemm problem_;
  uint64_t seed_;
  struct Call {
    Gemm problem;
    std::unique_ptr<GemmCases> cases; ///< null: small ones are made anew for each kernel, as they are many
  };
  std::vector<Call> calls_;
};

/// Bytes that a RangedCases takes, or more.
double ranged_case_bytes(const Gemm&);

} // namespace deepgen
