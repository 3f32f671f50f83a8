// Random problems and configs of mfma_attention on the simulated AMD devices, in the calls that verification
// makes: numbers against the f64 reference, bounds, races, waits. More of them: AMD_SIM_ATTENTION=1000
// AMD_SIM_SEED=7.
#include "base/kernel/amd.h"
#include "generator/space/sample.h"
#include "tests/amd_sim/attention_kernel.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

namespace deepgen::amd_sim {
namespace {

constexpr int kShares = 4;
const char* const kArchs[] = {"gfx90a", "gfx942", "gfx950"};

/// `sampled`: two cases of a kernel, chosen by the seed; else all.
void check(const Compiled& c, uint64_t seed, bool sampled) {
  std::vector<AttentionCase> cases = cases_for(c.kernel.problem.attention());
  if (sampled) cases = {cases[seed % cases.size()], cases[(3 * seed + 1) % cases.size()]};
  for (const AttentionCase& each : cases)
    EXPECT_EQ(fault_of(c, each, seed), "")
        << "case '" << each.name << "', seed " << seed << ": --arch " << c.kernel.target << " --problem \""
        << c.kernel.problem.key() << "\" --config \"" << c.kernel.choice.text() << "\"";
}

/// A quarter of them each, so that ctest runs them in parallel.
class AmdRandomAttention : public testing::TestWithParam<int> {};

TEST_P(AmdRandomAttention, IsRightOnTheSimulatedDevice) {
  const uint64_t first = from_environment("AMD_SIM_SEED", 12) * 100000;
  const uint64_t count = from_environment("AMD_SIM_ATTENTION", 72);
  const Template& attention = find_template("mfma_attention");
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    const Attention p = ptx_sim::draw_attention(first + i / kShares + 1000 * uint64_t(GetParam()), 90);
    const std::string arch = kArchs[i / kShares % std::size(kArchs)];
    std::mt19937_64 random(first + i);
    const auto config = draw_config(attention, p, generic_gpu(arch), random);
    ASSERT_TRUE(config) << p.key();
    check(attention_kernel(p, arch, config->text()), first + i, true);
    if (i % 5 == 0)
      check(attention_kernel(attention.awkward(p, *config).attention(), arch, config->text()), i, true);
  }
}
INSTANTIATE_TEST_SUITE_P(Share, AmdRandomAttention, testing::Range(0, kShares));

} // namespace
} // namespace deepgen::amd_sim
