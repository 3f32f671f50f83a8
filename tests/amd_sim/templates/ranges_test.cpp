// Kernels for AMD GPUs whose sizes only a call knows: random (problem, config, sizes of a call) of all
// templates on the simulated device. Another sample: AMD_SIM_SEED=7 AMD_SIM_RANGES=600.
#include "base/kernel/amd.h"
#include "base/kernel/kernel_call.h"
#include "generator/space/sample.h"
#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <sstream>

namespace deepgen::ranges_test {
namespace {

constexpr int kShares = 4, kCalls = 3; // and one with K 0

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
    const std::vector<Sizes> calls = draw_calls(p, random, kCalls);
    for (size_t call = 0; call < calls.size(); ++call) {
      const Kernel k = kernel_in_call(c.kernel, calls[call]);
      const auto cases = ptx_sim::chosen_cases(k.problem.gemm(), i);
      const cuda::CallCase& each = cases[call % cases.size()];
      EXPECT_EQ(amd_sim::check_case(k, c.ir, each, i).fault, "")
          << "case '" << each.name << "', seed " << i << ", a call of " << k.problem.key() << ": --arch "
          << s.arch << " --problem \"" << p.key() << "\" --config \"" << s.choice.text() << "\"";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Share, AmdRandomTriples, testing::Range(0, kShares));

/// Rows of A and B lie along M and N, so that a row of K too many is of nobody.
struct Deep {
  const char *name, *arch, *choice;
};
const Deep kDeep[] = {
    {"mfma", "gfx942",
     "mfma wide=1 size=16 bm=32 bn=32 bk=64 waves_m=2 waves_n=2 direct=0 buffer=0 stages=2 pingpong=0 "
     "blocks=1 splits=2 group=1 xcds=1"},
    {"mfma_buffer", "gfx942",
     "mfma wide=1 size=16 bm=32 bn=32 bk=64 waves_m=2 waves_n=2 direct=0 buffer=1 stages=3 pingpong=0 "
     "blocks=1 splits=1 group=1 xcds=1"},
    {"wmma", "gfx1100",
     "wmma wide=1 size=16 bm=32 bn=32 bk=64 waves_m=2 waves_n=2 direct=0 buffer=0 stages=1 pingpong=0 "
     "blocks=1 splits=1 group=1 xcds=1"},
};

class AmdDepth : public testing::TestWithParam<Deep> {};

TEST_P(AmdDepth, IsThatOfTheCall) {
  const Gemm p = Gemm::parse("gemm m=40 n=40 k=1..300 batch=2 a=f16 b=f16 d=f16 acc=f32 layout=tn "
                             "epilogue=bias align=2");
  const std::string choice = GetParam().choice;
  const size_t name = choice.find(' ');
  const amd_sim::Compiled c =
      amd_sim::compile(p, GetParam().arch, {choice.substr(0, name), Config::parse(choice.substr(name + 1))});
  const auto fault = [&](int64_t k, int64_t told) {
    const Kernel call = kernel_in_call(c.kernel, {p.m, p.n, k, p.batch});
    amd_sim::Report report;
    const ptx_sim::Runner right = amd_sim::runner(call, c.ir, report);
    const auto run = [&](const Launch& l, std::vector<std::vector<uint8_t>> arguments,
                         ptx_sim::GlobalMemory& memory, uint64_t seed) {
      for (size_t i = 0; i < arguments.size(); ++i)
        if (call.args[i] == "k") std::memcpy(arguments[i].data(), &told, sizeof told);
      right(l, arguments, memory, seed);
    };
    return ptx_sim::check_case(call, ptx_sim::chosen_cases(call.problem.gemm(), 1)[0], 1, run).fault;
  };
  for (const int64_t k : {0, 1, 31, 32, 33, 63, 64, 65, 96, 150, 299, 300})
    EXPECT_EQ(fault(k, k), "") << "k=" << k;
  for (const int64_t told : {0, 118, 149, 151, 300})
    EXPECT_NE(fault(150, told), "") << "k=" << told << " in a call of k=150";
}
INSTANTIATE_TEST_SUITE_P(Of, AmdDepth, testing::ValuesIn(kDeep),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace deepgen::ranges_test
