// What a CPU kernel needs and what a CPU has.
#include "base/kernel/cpu_isa.h"

#include <gtest/gtest.h>

namespace deepgen::cpu_isa_test {
namespace {

Device cpu(int64_t level, std::vector<std::string> features = {}) {
  Device device;
  device.isa = level, device.features = std::move(features);
  return device;
}

TEST(CpuIsa, IsOfLevelAndFeatures) {
  EXPECT_EQ(isa_of(cpu(3)), 3);
  EXPECT_EQ(isa_of(cpu(3, {"avx512bf16", "avxvnni"})), 3 | isa_avxvnni) << "the others are for level 4";
  EXPECT_EQ(isa_of(cpu(4, {"avx512bf16", "avx512vnni"})), 4 | isa_avx512bf16 | isa_avx512vnni);
  EXPECT_EQ(isa_of(cpu(4, {"amx-int8", "amx-tile"})), 4) << "AMX is all three of them";
  EXPECT_EQ(isa_of(cpu(4, {"amx-bf16", "amx-int8", "amx-tile"})), 4 | isa_amx);
  EXPECT_EQ(isa_of(cpu(INT64_MAX)), 4 | isa_avxvnni | isa_avx512vnni | isa_avx512bf16 | isa_amx);
}

TEST(CpuIsa, RunsWhereLevelAndExtensionsAre) {
  EXPECT_TRUE(runs_on(3, 4));
  EXPECT_FALSE(runs_on(4, 3 | isa_avxvnni));
  EXPECT_TRUE(runs_on(3 | isa_avxvnni, 4 | isa_avxvnni | isa_amx));
  EXPECT_FALSE(runs_on(3 | isa_avxvnni, 4 | isa_amx));
  EXPECT_TRUE(runs_on(1, INT64_MAX)) << "what stands for no CPU";
  EXPECT_EQ(common_isa(4 | isa_amx | isa_avxvnni, 3 | isa_avxvnni), 3 | isa_avxvnni);
  EXPECT_EQ(common_isa(4 | isa_amx, 4), 4);
}

TEST(CpuIsa, HasWords) {
  EXPECT_EQ(isa_text(1), "x86-64-v1");
  EXPECT_EQ(isa_text(4 | isa_amx | isa_avx512vnni),
            "x86-64-v4 with avx512vnni, amx-bf16, amx-int8, amx-tile");
  EXPECT_EQ(isa_features(3), "");
  EXPECT_EQ(isa_features(4 | isa_amx), "+amx-bf16,+amx-int8,+amx-tile");
  Device device = cpu(4, {"amx-bf16", "amx-int8", "amx-tile", "avx2", "avxvnni"});
  limit_features(device, 4 | isa_avxvnni);
  EXPECT_EQ(device.features, (std::vector<std::string>{"avx2", "avxvnni"}));
}

} // namespace
} // namespace deepgen::cpu_isa_test
