// A matrix product of oneDNN while its line is read.
#pragma once

#include "workload/log/call.h"

namespace deepgen {

struct OnednnCall {
  Gemm gemm;
  size_t dimensions = 2; ///< of its matrices, with those of a batch
  bool bias = false;
};

/// "attr-scratchpad:user attr-scales:src0:0:f32+wei:2:f32 attr-post-ops:eltwise_relu+binary_add:f32:2": fills
/// in the epilogue, scales first, then the bias. Throws Untranslatable.
void read_attributes(std::string_view text, OnednnCall&);

} // namespace deepgen
