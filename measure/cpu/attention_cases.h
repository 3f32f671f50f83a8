// Calls of a kernel of attention on the CPU, on guarded operands.
#pragma once

#include "measure/values/attention/attention_truth.h"

#include <memory>

namespace deepgen {

class AttentionCases : public CaseSet {
public:
  AttentionCases(const Attention&, uint64_t seed);

  Problem problem() const override { return problem_; }
  Verdict verify(const LoadedKernel& kernel, int64_t workspace,
                 const std::function<void(const std::string&)>& before) override;

private:
  struct Prepared {
    Prepared(const Attention&, const AttentionCase&, uint64_t seed);

    AttentionCase what;
    std::shared_ptr<const AttentionTruth> truth;
    const AttentionInputs& inputs;
    GuardedMatrix q, key, value, bias, out, lse;
    AttentionCall call;
  };
  Verdict run(Prepared&, const LoadedKernel&, GuardedWorkspace&) const;

  Attention problem_;
  std::vector<std::unique_ptr<Prepared>> cases_;
};

} // namespace deepgen
