// Calls of a batch invariant kernel on a GPU whose rows must be equal bit by bit.
#pragma once

#include "measure/gpu/cuda_launch.h"
#include "measure/gpu/toolbox/cuda_operands.h"
#include "measure/values/invariant_rows.h"
#include "measure/values/verify.h"

namespace deepgen::cuda {

/// The operands of a problem's calls, in the device's memory, for all its kernels.
class EqualRowCalls {
public:
  EqualRowCalls(const Gemm&, const Toolbox&, uint64_t seed);

  /// `kernel`: of the problem, with its ranges.
  Verdict verify(const Kernel& kernel, const std::function<void(const std::string&)>& before) const;

private:
  /// Those of the largest call; others have the first rows.
  struct Operands {
    InvariantCalls what;
    Gemm largest;
    std::vector<Memory> memory;
    CallOperands call;
  };
  Array add(Operands&, Type, int64_t rows, int64_t columns, int64_t batch, const Values&) const;
  Operands operands_of(const InvariantCalls&, uint64_t seed) const;
  void add_steps(Operands&, uint64_t seed) const;
  CallOperands in_call(const Operands&, const Gemm& at, bool scaled) const;
  std::string run(const Kernel& kernel, const Operands&, const Sizes&, bool scaled, EqualRows& rows) const;

  const Gemm problem_;
  const Toolbox& tools_;
  std::vector<Operands> operands_;
};

} // namespace deepgen::cuda
