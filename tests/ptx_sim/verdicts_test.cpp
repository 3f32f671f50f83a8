// Verdicts on kernels for NVIDIA GPUs, run on the simulated device, as they were recorded.
//   VERDICTS=all build/ci/bin/ptx_sim_test --gtest_filter='Verdicts.*'
#include "tests/verdicts.h"

#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "tests/ptx_sim/check.h"

namespace deepgen {
namespace {

using verdicts::Recorded;

constexpr size_t kKernels = 40;

/// One case: the strictest.
Recorded verified_now(Recorded r) {
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  KernelFile file = compile_candidate(r.compiled, r.arch, r.choice, false, false);
  r.status = file.status, r.error = 0;
  if (file.status != "ok") return r;
  Kernel& kernel = file.kernels.front();
  kernel.problem = r.verified;
  const ptx_sim::Outcome outcome =
      ptx_sim::check_case(kernel, ptx_sim::chosen_cases(r.verified.gemm(), 1).front(), 1);
  r.status = outcome.fault.empty() ? "ok" : "wrong", r.error = outcome.error;
  return r;
}

/// Every fifth one is verified as what it does not compute.
std::vector<Recorded> drawn() {
  SampleSpec spec;
  spec.archs = {"sm_80", "sm_90a"};
  spec.templates = {"simt", "mma_sync", "gemv", "hopper_ws"};
  spec.seed = 19, spec.count = kKernels, spec.largest = 150, spec.most_flops = 1e6;
  std::vector<Recorded> all;
  for (const RandomCandidate& s : draw_samples(spec)) {
    const Gemm& p = s.problem.gemm();
    const bool other = all.size() % 5 == 0 && p.d != Type::i32; // which has no functions
    all.push_back({s.arch, s.problem, other ? verdicts::other_function(p) : s.problem, s.choice});
  }
  return all;
}

TEST(Verdicts, AreThoseThatWereRecorded) {
  verdicts::expect_as_recorded(DEEPGEN_VERDICTS, kKernels, 7, drawn, verified_now);
}

TEST(Verdicts, AChangedOneIsFound) { verdicts::expect_changes_to_be_found(DEEPGEN_VERDICTS, verified_now); }

} // namespace
} // namespace deepgen
