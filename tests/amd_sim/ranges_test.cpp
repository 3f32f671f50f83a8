// Kernels for AMD GPUs whose sizes only a call knows: random (problem, config, sizes of a call) of all
// templates on the simulated device. Another sample: AMD_SIM_SEED=7 AMD_SIM_RANGES=600.
#include "base/kernel/amd.h"
#include "base/kernel/kernel_call.h"
#include "generator/space/sample.h"
#include "tests/amd_sim/check.h"
#include "tests/amd_sim/compiled.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

namespace deepgen {
namespace {

constexpr int kShares = 4, kCalls = 3;

const std::vector<RandomCandidate>& samples() {
  static const std::vector<RandomCandidate> all = [] {
    SampleSpec spec;
    std::istringstream archs(amd_archs());
    spec.archs = {std::istream_iterator<std::string>(archs), {}};
    spec.seed = from_environment("AMD_SIM_SEED", 6);
    spec.count = from_environment("AMD_SIM_RANGES", 60);
    spec.largest = 200;
    spec.most_flops = 3e6;
    spec.ranges = true;
    return draw_samples(spec);
  }();
  return all;
}

/// A quarter of them each, so that ctest runs them in parallel.
class AmdRandomTriples : public testing::TestWithParam<int> {};

TEST_P(AmdRandomTriples, AreRightOnTheSimulatedDevice) {
  ASSERT_FALSE(samples().empty());
  for (size_t i = size_t(GetParam()); i < samples().size(); i += kShares) {
    const RandomCandidate& s = samples()[i];
    const Gemm& p = s.problem.gemm();
    const amd_sim::Compiled c = amd_sim::compile(p, s.arch, s.choice);
    std::mt19937_64 random(i);
    for (int call = 0; call < kCalls; ++call) {
      const Kernel k = kernel_in_call(c.kernel, draw_sizes(p, random));
      const auto cases = ptx_sim::chosen_cases(k.problem.gemm(), i);
      const cuda::CallCase& each = cases[size_t(call) % cases.size()];
      EXPECT_EQ(amd_sim::check_case(k, c.ir, each, i).fault, "")
          << "case '" << each.name << "', seed " << i << ", a call of " << k.problem.key() << ": --arch "
          << s.arch << " --problem \"" << p.key() << "\" --config \"" << s.choice.text() << "\"";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Share, AmdRandomTriples, testing::Range(0, kShares));

} // namespace
} // namespace deepgen
