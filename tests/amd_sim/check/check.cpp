#include "tests/amd_sim/check/check.h"

#include "tests/ptx_sim/program/fault.h"

namespace deepgen::amd_sim {

ptx_sim::Runner runner(const Kernel& k, const std::string& ir, Report& report) {
  return [&](const Launch& l, const std::vector<std::vector<uint8_t>>& arguments,
             ptx_sim::GlobalMemory& memory, uint64_t launch_seed) {
    if (l.cluster != std::array<int64_t, 3>{1, 1, 1}) throw ptx_sim::Fault("AMD GPUs have no clusters");
    const Report r = run_launch(ir, k.target, {l.entry, l.grid, l.block}, arguments, memory, launch_seed);
    report.lds.insert(report.lds.end(), r.lds.begin(), r.lds.end());
    report.matrix_operations += r.matrix_operations;
  };
}

Outcome check_case(const Kernel& k, const std::string& ir, const cuda::CallCase& c, uint64_t seed) {
  Outcome out;
  static_cast<ptx_sim::Outcome&>(out) = ptx_sim::check_case(k, c, seed, runner(k, ir, out.report));
  return out;
}

Outcome check_rows(const Kernel& k, const std::string& ir, const ptx_sim::RowsCase& c, uint64_t seed) {
  Outcome out;
  static_cast<ptx_sim::Outcome&>(out) = ptx_sim::check_rows(k, c, seed, runner(k, ir, out.report));
  return out;
}

} // namespace deepgen::amd_sim
