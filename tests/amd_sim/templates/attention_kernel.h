// Kernels of mfma_attention as the simulator takes them, and what it finds in their calls.
#pragma once

#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"
#include "tests/ptx_sim/check/attention_check.h"

namespace deepgen::amd_sim {

inline Compiled attention_kernel(const Attention& p, const std::string& arch, const std::string& config) {
  return compile(p, arch, {"mfma_attention", Config::parse(config)});
}

/// "": none. `report`: of the launches, if it is wanted.
inline std::string fault_of(const Compiled& c, const AttentionCase& each, uint64_t seed,
                            Report* report = nullptr) {
  Report own;
  return ptx_sim::check_attention(c.kernel, each, seed, runner(c.kernel, c.ir, report ? *report : own)).fault;
}

} // namespace deepgen::amd_sim
