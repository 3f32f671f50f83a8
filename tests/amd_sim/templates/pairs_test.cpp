// Random (problem, config) pairs of all templates for AMD GPUs on the simulated device: numbers against the
// f64 reference, bounds, races, waits. Another sample: AMD_SIM_SEED=7 AMD_SIM_COUNT=600
// AMD_SIM_ARCHS="gfx1100 gfx1201" AMD_SIM_TEMPLATES=wmma; of a large one, those whose config has these words:
// AMD_SIM_CONFIGS="direct=1 stages=3".
#include "base/kernel/amd.h"
#include "generator/space/sample.h"
#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace deepgen::pairs_test {
namespace {

constexpr int kShares = 4;
constexpr uint64_t kCount = 120;

std::vector<std::string> words_from_environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  std::istringstream text(value && *value ? value : otherwise);
  return {std::istream_iterator<std::string>(text), {}};
}

const std::vector<RandomCandidate>& samples() {
  static const std::vector<RandomCandidate> all = [] {
    SampleSpec spec;
    spec.archs = words_from_environment("AMD_SIM_ARCHS", amd_archs());
    spec.templates = words_from_environment("AMD_SIM_TEMPLATES", "");
    spec.seed = from_environment("AMD_SIM_SEED", 12);
    spec.count = from_environment("AMD_SIM_COUNT", kCount);
    spec.largest = 260;
    spec.most_flops = 5e6;
    std::vector<RandomCandidate> drawn = draw_samples(spec);
    if (drawn.size() < spec.count) throw std::runtime_error("fewer samples than wanted");
    for (const std::string& word : words_from_environment("AMD_SIM_CONFIGS", ""))
      std::erase_if(drawn, [&](const RandomCandidate& s) {
        return (s.choice.text() + " ").find(" " + word + " ") == std::string::npos;
      });
    std::printf("%zu pairs in %d shares\n", drawn.size(), kShares);
    return drawn;
  }();
  return all;
}

void check(const RandomCandidate& s, uint64_t seed) {
  const amd_sim::Compiled c = amd_sim::compile(s.problem.gemm(), s.arch, s.choice);
  for (const cuda::CallCase& each : ptx_sim::chosen_cases(s.problem.gemm(), seed))
    EXPECT_EQ(amd_sim::check_case(c.kernel, c.ir, each, seed).fault, "")
        << "case '" << each.name << "', seed " << seed << ": --arch " << s.arch << " --problem \""
        << s.problem.key() << "\" --config \"" << s.choice.text() << "\"";
}

/// A quarter of them each, so that ctest runs them in parallel.
class AmdRandomPairs : public testing::TestWithParam<int> {};

TEST_P(AmdRandomPairs, AreRightOnTheSimulatedDevice) {
  ASSERT_FALSE(samples().empty());
  for (size_t i = size_t(GetParam()); i < samples().size(); i += kShares) check(samples()[i], i);
}
INSTANTIATE_TEST_SUITE_P(Share, AmdRandomPairs, testing::Range(0, kShares));

} // namespace
} // namespace deepgen::pairs_test
