#include "measure/cpu/ranged_cases.h"

#include "base/kernel/kernel_call.h"
#include "measure/values/verified_sizes.h"

namespace deepgen {
namespace {

std::string text(const Gemm& p) {
  return "m=" + std::to_string(p.m) + " n=" + std::to_string(p.n) + " k=" + std::to_string(p.k) +
         " batch=" + std::to_string(p.batch);
}

} // namespace

RangedCases::RangedCases(const Gemm& p, uint64_t seed) : problem_(p), seed_(seed) {
  constexpr double kSmallFlops = 1e8;
  for (const Sizes& sizes : verified_sizes(p)) {
    Call call{problem_at(p, sizes), nullptr};
    if (call.problem.flops() > kSmallFlops) call.cases = std::make_unique<GemmCases>(call.problem, seed);
    calls_.push_back(std::move(call));
  }
}

Verdict RangedCases::verify(const LoadedKernel& kernel, int64_t workspace,
                            const std::function<void(const std::string&)>& before) {
  Verdict worst;
  for (const Call& call : calls_) {
    const std::unique_ptr<GemmCases> own =
        call.cases ? nullptr : std::make_unique<GemmCases>(call.problem, seed_);
    GemmCases& cases = call.cases ? *call.cases : *own;
    const Verdict one = cases.verify(
        kernel, workspace, [&](const std::string& name) { before(name + "' at '" + text(call.problem)); });
    if (one.status != "ok") return one;
    worst.error = std::max(worst.error, one.error);
  }
  return worst;
}

double ranged_case_bytes(const Gemm& p) {
  double bytes = 0;
  for (const Sizes& sizes : verified_sizes(p)) bytes += case_bytes(problem_at(p, sizes));
  return bytes;
}

} // namespace deepgen
