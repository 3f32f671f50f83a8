// Every kernel call that verification makes of an attention.
#pragma once

#include "measure/values/attention/attention_expected.h"
#include "measure/values/buffers.h"
#include "measure/values/verify.h"

#include <memory>

namespace deepgen {

/// What one call, or one set of calls that share out its blocks, must get right.
struct AttentionCase {
  const char* name;
  AttentionShape shape;
  GridCut cut = GridCut::whole;
  Guard guard = Guard::behind;
  bool misaligned = false; ///< bases aligned to an element only
};

/// The call that the problem is tuned for, and small ones of other sizes, layouts and options.
std::vector<AttentionCase> cases_for(const Attention&);

class AttentionCases : public CaseSet {
public:
  AttentionCases(const Attention&, uint64_t seed);

  Problem problem() const override { return problem_; }
  Verdict verify(const LoadedKernel& kernel, int64_t workspace,
                 const std::function<void(const std::string&)>& before) override;

private:
  struct Row {
    int64_t entry, token, head;
    ExpectedAttention expected;
  };
  struct Prepared {
    Prepared(const Attention&, const AttentionCase&, uint64_t seed);

    AttentionCase what;
    AttentionInputs inputs;
    GuardedMatrix q, key, value, out, lse;
    AttentionCall call;
    std::vector<Row> rows; ///< that are compared
  };
  void choose_rows(Prepared&, uint64_t seed) const;
  Verdict run(Prepared&, const LoadedKernel&, int64_t workspace) const;
  Verdict compare(const Prepared&) const;
  Verdict check_finite(const Prepared&) const;

  Attention problem_;
  std::vector<std::unique_ptr<Prepared>> cases_;
};

/// Bytes that AttentionCases take, or more.
double case_bytes(const Attention&);

} // namespace deepgen
