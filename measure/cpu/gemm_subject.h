// What a GEMM is timed on: alpha 1 and beta 0.
#pragma once

#include "measure/cpu/subject.h"
#include "measure/values/inputs.h"
#include "measure/values/operands.h"

namespace deepgen {

class GemmOperands : public TimingOperands {
public:
  GemmOperands(const Gemm&, int64_t workspace, uint64_t seed);
  CallBuffers buffers() const;
  SlotValues values() const override { return values_of(buffers(), problem_); }
  void touch() const override;

private:
  Gemm problem_;
  Inputs inputs_;
  PageBuffer d_, workspace_, packed_b_;
};

} // namespace deepgen
