// Random problems and configs of mma_attention on the simulated NVIDIA device, in the calls that verification
// makes: numbers against the f64 reference, bounds, races. More of them: PTX_SIM_ATTENTION=1000
// PTX_SIM_SEED=7.
#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "tests/ptx_sim/attention_check.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace deepgen {
namespace {

constexpr int kShares = 4;
const char* const kArchs[] = {"sm_80", "sm_89", "sm_90a"};

KernelFile compiled(const Attention& p, const std::string& arch, const Config& config) {
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  return compile_candidate(p, arch, {"mma_attention", config}, true, false);
}

/// `sampled`: two cases of a kernel, chosen by the seed; else all.
void check(const KernelFile& file, uint64_t seed, bool sampled) {
  ASSERT_EQ(file.status, "ok") << file.detail << ": " << file.problem.key() << " | " << file.choice.text();
  for (const Kernel& kernel : file.kernels) {
    std::vector<AttentionCase> cases = cases_for(kernel.problem.attention());
    if (sampled) cases = {cases[seed % cases.size()], cases[(3 * seed + 1) % cases.size()]};
    for (const AttentionCase& c : cases)
      EXPECT_EQ(ptx_sim::check_attention(kernel, c, seed).fault, "")
          << "case '" << c.name << "', seed " << seed << ", " << kernel.role << ", " << file.arch << ": "
          << kernel.problem.key() << " | " << kernel.choice.text();
  }
}

/// A quarter of them each, so that ctest runs them in parallel.
class RandomAttention : public testing::TestWithParam<int> {};

TEST_P(RandomAttention, IsRightOnTheSimulatedDevice) {
  const uint64_t first = from_environment("PTX_SIM_SEED", 3) * 100000;
  const uint64_t count = from_environment("PTX_SIM_ATTENTION", 40);
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    const Attention p = ptx_sim::draw_attention(first + i / kShares + 1000 * uint64_t(GetParam()), 90);
    const std::string arch = kArchs[i % std::size(kArchs)];
    std::mt19937_64 random(first + i);
    const auto config = draw_config(find_template("mma_attention"), p, generic_gpu(arch), random);
    ASSERT_TRUE(config) << p.key();
    check(compiled(p, arch, *config), first + i, true);
  }
}
INSTANTIATE_TEST_SUITE_P(Share, RandomAttention, testing::Range(0, kShares));

/// All calls, of each way to go over keys, with heads packed and not.
class EveryCall : public testing::TestWithParam<const char*> {};

TEST_P(EveryCall, IsRight) {
  for (const char* mask : {"causal", "window"}) {
    const Attention p = Attention::parse(
        std::string("attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=") +
        mask + " queries=100 keys=600 options=varlen+lse+softcap+sink at_batch=1 at_queries=70 at_keys=150");
    const Config config = Config::parse(GetParam());
    ASSERT_EQ(find_template("mma_attention").why_illegal(p, generic_gpu("sm_90a"), config), "") << p.key();
    check(compiled(p, "sm_90a", config), 5, false);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Configs, EveryCall,
    testing::Values("rows=64 warps=4 keys=32 stages=1 hold=0 pack=0 align=16 resident=1",
                    "rows=64 warps=2 keys=64 stages=2 hold=1 pack=1 align=16 resident=1",
                    "rows=128 warps=4 keys=32 stages=3 hold=0 pack=1 align=16 resident=1"));

/// Whatever the problem is that it serves, some config is legal.
TEST(MmaAttention, SpaceIsNeverEmpty) {
  const Template& attention = find_template("mma_attention");
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Attention p = ptx_sim::draw_attention(seed, 3000);
    if (seed % 5 == 0) p.head_dim = most_head_dim, p.value_dim = 256;
    if (seed % 7 == 0) p.queries = p.keys = most_tokens;
    for (const char* arch : kArchs) {
      ASSERT_EQ(attention.why_not(p, arch), "") << p.key();
      std::mt19937_64 random(seed);
      EXPECT_TRUE(draw_config(attention, p, generic_gpu(arch), random)) << p.key() << " on " << arch;
    }
  }
}

TEST(MmaAttention, SaysWhatItDoesNotServe) {
  const Template& attention = find_template("mma_attention");
  Attention p;
  p.q = p.kv = Type::f32;
  EXPECT_NE(attention.why_not(p, "sm_90a").find("TYPES f16 f16"), std::string::npos);
  p.q = p.kv = Type::bf16;
  EXPECT_EQ(attention.why_not(p, "sm_80"), "");
  EXPECT_NE(attention.why_not(p, "gfx942").find("leave the arch out"), std::string::npos);
  p.value_dim = 320;
  EXPECT_NE(attention.why_not(p, "sm_90a").find("at most 256"), std::string::npos);
}

} // namespace
} // namespace deepgen
