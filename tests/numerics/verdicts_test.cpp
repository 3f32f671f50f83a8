// Verdicts on 200 CPU kernels as they were recorded: what changes verification by accident changes one.
//   VERDICTS=all build/ci/bin/numerics_test --gtest_filter='Verdicts.*'
#include "tests/verdicts.h"

#include "tests/numerics/numerics.h"
#include "tests/paths.h"

namespace deepgen::verdicts_test {
namespace {

using namespace numerics;
using verdicts::Recorded;

constexpr size_t kKernels = 200;

Recorded verified_now(Recorded r) {
  KernelFile file = compile_candidate(r.compiled, r.arch, r.choice, false, false);
  r.status = file.status, r.error = 0;
  if (file.status != "ok") return r;
  Kernel& kernel = file.kernels.front();
  kernel.problem = r.verified;
  const Verdict v =
      subject_of(r.verified)->cases(7)->verify(LoadedKernel(kernel), kernel.workspace, [](const auto&) {});
  r.status = v.status, r.error = v.error;
  return r;
}

/// For levels that nearly every host has: the record's, not the host's. Every fifth one is verified as what
/// it does not compute.
std::vector<Recorded> drawn() {
  constexpr EpilogueOp kGates[] = {EpilogueOp::silu, EpilogueOp::gelu, EpilogueOp::relu};
  std::vector<Recorded> all;
  Rng rng(19);
  for (size_t i = 0; i < kKernels; ++i) {
    Recorded r;
    if (i % 4 == 3) {
      r.compiled = random_rows(rng, i / 4);
    } else {
      Gemm p = random_problem(rng, i);
      do p.epilogue = random_epilogue(rng);
      while (i % 3 == 0 && (p.has(EpilogueOp::scale_a) || p.has(EpilogueOp::scale_b)));
      if (i % 3 == 0) p.gate = kGates[rng() % std::size(kGates)];
      r.compiled = p;
    }
    r.verified = i % 5 == 0 ? verdicts::other_function(r.compiled) : r.compiled;
    const Space space(r.compiled, "cpu", device_of_level(i % 2 ? 3 : 1));
    r.choice = space.choice(rng() % space.size());
    all.push_back(r);
  }
  return all;
}

class Verdicts : public testing::Test {
  void SetUp() override {
    if (host_level() < 3) GTEST_SKIP() << "without AVX2, which half of the record's kernels need";
  }
};

TEST_F(Verdicts, AreThoseThatWereRecorded) {
  verdicts::expect_as_recorded(paths::verdicts, kKernels, 7, drawn, verified_now);
}

TEST_F(Verdicts, AChangedOneIsFound) { verdicts::expect_changes_to_be_found(paths::verdicts, verified_now); }

} // namespace
} // namespace deepgen::verdicts_test
