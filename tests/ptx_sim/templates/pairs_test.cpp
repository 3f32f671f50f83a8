// Random (problem, config) pairs of all GPU templates on the simulated device: numbers against the f64
// reference, bounds of every operand, races in shared memory. Another sample: PTX_SIM_SEED=7
// PTX_SIM_COUNT=600.
#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "tests/ptx_sim/check/check.h"
#include "tests/ptx_sim/from_environment.h"
#include "tests/ptx_sim/hopper_ws/hopper_kernel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace deepgen::pairs_test {
namespace {

constexpr int kShares = 4;

const std::vector<RandomCandidate>& samples() {
  static const std::vector<RandomCandidate> all = [] {
    SampleSpec spec;
    spec.archs = {"sm_80", "sm_89", "sm_90a"};
    spec.templates = {"simt", "mma_sync", "gemv", "hopper_ws"};
    spec.seed = from_environment("PTX_SIM_SEED", 3);
    spec.count = from_environment("PTX_SIM_COUNT", 130);
    spec.largest = 300;
    spec.most_flops = 1e7;
    return draw_samples(spec);
  }();
  return all;
}

void check(const Kernel& kernel, uint64_t seed) {
  for (const cuda::CallCase& c : ptx_sim::chosen_cases(kernel.problem.gemm(), seed))
    EXPECT_EQ(ptx_sim::check_case(kernel, c, seed).fault, "")
        << "case '" << c.name << "', seed " << seed << ", " << kernel.role << ": " << kernel.problem.key()
        << " | " << kernel.choice.text();
}

/// A quarter of them each, so that ctest runs them in parallel.
class RandomPairs : public testing::TestWithParam<int> {};

TEST_P(RandomPairs, AreRightOnTheSimulatedDevice) {
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  size_t checked = 0;
  for (size_t i = size_t(GetParam()); i < samples().size(); i += kShares) {
    const RandomCandidate& s = samples()[i];
    std::optional<Walking> walking; // every other one
    if (i / kShares % 2) walking.emplace();
    const KernelFile file = compile_candidate(s.problem, s.arch, s.choice, true, false);
    ASSERT_EQ(file.status, "ok") << file.detail << ": " << s.problem.key() << " | " << s.choice.text();
    for (const Kernel& kernel : file.kernels) {
      check(kernel, i);
      EXPECT_EQ(kernel.workspace,
                find_template(kernel.choice.template_name).workspace(kernel.problem, kernel.choice.config))
          << kernel.problem.key() << " | " << kernel.choice.text();
    }
    checked += file.kernels.size();
  }
  EXPECT_GE(checked, samples().size() / kShares) << "kernels, of which one is for the sample's own problem";
}
INSTANTIATE_TEST_SUITE_P(Share, RandomPairs, testing::Range(0, kShares));

} // namespace
} // namespace deepgen::pairs_test
