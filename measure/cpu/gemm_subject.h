// What a GEMM is timed on: alpha 1 and beta 0.
#pragma once

#include "measure/cpu/subject.h"
#include "measure/values/inputs.h"
#include "measure/values/operands.h"

namespace deepgen {

/// Seconds that others wait behind a vendor's call on several threads, at most: those of OpenBLAS spin for
/// 2^26 ticks of the CPU's counter, those of OpenMP for some milliseconds.
inline constexpr double vendor_rest = 0.06;

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
