// Whether a GPU kernel of attention computes the right thing and nothing else: the calls that the CPU's
// kernels are verified by (measure/values/attention/attention_case.h), with their values and the same
// reference on the host. What it must not touch is checked in the device's memory.
#pragma once

#include "measure/gpu/cuda_verify.h"
#include "measure/values/attention/attention_truth.h"

#include <map>
#include <memory>

namespace deepgen::cuda {

/// The case as the kernel can take it: distances between rows, and bases that are misaligned, are multiples
/// of what it asks for.
AttentionCase taken_by(const Kernel&, AttentionCase);

/// What its main and fallback kernels are held against, to be held while they are verified: workers that fork
/// then have it, whatever became of the one before.
std::vector<std::shared_ptr<const AttentionTruth>> attention_truths(const KernelFile&, uint64_t seed);

class AttentionVerifier : public KernelVerifier {
public:
  AttentionVerifier(const Context& context, const Toolbox& tools, uint64_t seed, int64_t zone);
  ~AttentionVerifier() override;
  Verdict verify(const Kernel& kernel, const std::function<void(const std::string&)>& before) override;

private:
  struct Call;
  using Calls = std::vector<std::unique_ptr<Call>>;
  const Calls& calls_of(const Kernel&);
  /// `workspace`: null where the kernel needs none.
  Verdict verify_call(const LoadedKernel&, const Call&, const GuardedArray* workspace) const;
  Verdict damage(const Call&, const GuardedArray* workspace) const;

  const Context& context_;
  const Toolbox& tools_;
  uint64_t seed_;
  int64_t zone_;
  /// Of the last problems, shared by their kernels; and of the last awkward kernels, whose problems are as
  /// many as configs.
  std::map<std::string, Calls> calls_, awkward_;
};

} // namespace deepgen::cuda
