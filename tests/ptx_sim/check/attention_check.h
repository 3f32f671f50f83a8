// Check of a kernel of attention on the simulated device, in the calls that verification makes
// (measure/values/attention/attention_case.h), held against the f64 reference.
#pragma once

#include "measure/values/attention/attention_case.h"
#include "tests/ptx_sim/check/check.h"

namespace deepgen::ptx_sim {

Outcome check_attention(const Kernel&, const AttentionCase&, uint64_t seed);
/// The same on another device.
Outcome check_attention(const Kernel&, const AttentionCase&, uint64_t seed, const Runner&);

/// Of these strides, those in whose place the kernel may be told 0, and no fault is found.
std::vector<std::string> unseen_strides(const Kernel&, const AttentionCase&, uint64_t seed,
                                        const std::vector<std::string>& strides);
std::vector<std::string> unseen_bias_strides(const Kernel&, const AttentionCase&, uint64_t seed);

/// What the seed draws: a few heads, with types, mask and options, and sizes up to `largest`.
Attention draw_attention(uint64_t seed, int64_t largest);

} // namespace deepgen::ptx_sim
