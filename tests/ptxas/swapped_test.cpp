// Registers of attention with swapped operands, by ptxas for sm_90a: its estimate of them holds.
#include "base/kernel/device.h"
#include "generator/codegen/compile.h"
#include "generator/codegen/ptxas.h"
#include "generator/space/space.h"
#include "templates/core/template.h"

#include <gtest/gtest.h>

namespace deepgen {
namespace {

constexpr const char* kArch = "sm_90a";

Config swapped(int64_t keys, int64_t resident) {
  return Config::parse("consumers=1 resident=" + std::to_string(resident) + " keys=" + std::to_string(keys) +
                       " ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 persistent=1 pack=1 splits=8 "
                       "swap=1");
}

class Swapped : public testing::TestWithParam<int> {};

/// Of each tile as many blocks as are legal, with the mask and the options that take most registers.
TEST_P(Swapped, AsManyBlocksAsAreLegalDoNotSpill) {
  if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas";
  const Template& family = find_template("hopper_attention");
  const std::string d = std::to_string(GetParam());
  int compiled = 0;
  for (int64_t queries : {1, 3, 5, 6})
    for (int64_t keys : {64, 128, 192}) {
      const Attention p = Attention::parse("attention heads=16 kv_heads=2 head_dim=" + d + " value_dim=" + d +
                                           " q=f16 kv=f16 out=f16 mask=window queries=64 keys=8192 "
                                           "options=lse+softcap at_batch=1 at_queries=" +
                                           std::to_string(queries) + " at_keys=8192");
      int64_t resident = 4;
      while (resident && !family.why_illegal(p, generic_gpu(kArch), swapped(keys, resident)).empty())
        --resident;
      if (!resident) continue;
      const KernelFile file =
          compile_candidate(p, kArch, {"hopper_attention", swapped(keys, resident)}, false, false);
      EXPECT_EQ(file.status, "ok") << file.detail << ": " << p.key() << " | keys=" << keys
                                   << " resident=" << resident;
      ++compiled;
    }
  EXPECT_GE(compiled, 4);
}
INSTANTIATE_TEST_SUITE_P(Dimensions, Swapped, testing::Values(64, 128, 256));

} // namespace
} // namespace deepgen
