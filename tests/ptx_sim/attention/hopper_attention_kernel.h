// Kernels of hopper_attention for the simulated device, and what is expected of them.
#pragma once

#include "generator/codegen/compile.h"
#include "generator/space/space.h"
#include "templates/core/operator_template.h"
#include "tests/ptx_sim/check/attention_check.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace deepgen::ptx_sim {

/// Of a legal config.
inline Kernel attention_kernel(const Attention& p, const Config& config) {
  constexpr const char* kArch = "sm_90a";
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  EXPECT_EQ(find_template("hopper_attention").why_not(p, kArch), "") << p.key();
  EXPECT_EQ(why_illegal(p, kArch, generic_gpu(kArch), {"hopper_attention", config}), "") << p.key();
  const KernelFile file = compile_candidate(p, kArch, {"hopper_attention", config}, false, false);
  EXPECT_EQ(file.status, "ok") << file.detail << ": " << p.key() << " | " << config.text();
  return file.kernels.at(0);
}
inline Kernel attention_kernel(const Attention& p, const std::string& config) {
  return attention_kernel(p, Config::parse(config));
}

inline void expect_right(const Kernel& kernel, const AttentionCase& c, uint64_t seed) {
  EXPECT_EQ(check_attention(kernel, c, seed).fault, "")
      << "case '" << c.name << "', seed " << seed << ": " << kernel.problem.key() << " | "
      << kernel.choice.text();
}
inline void expect_right(const Kernel& kernel, const std::vector<AttentionCase>& cases, uint64_t seed) {
  for (const AttentionCase& c : cases) expect_right(kernel, c, seed);
}

} // namespace deepgen::ptx_sim
