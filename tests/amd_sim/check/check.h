// Check: a kernel for an AMD GPU on the simulated device, with the operands, cases and reference of ptx_sim.
#pragma once

#include "tests/amd_sim/machine/launch.h"
#include "tests/ptx_sim/check/check.h"
#include "tests/ptx_sim/check/rows_check.h"

namespace deepgen::amd_sim {

struct Outcome : ptx_sim::Outcome {
  Report report; ///< of all launches
};

/// Runs launches on the simulated device, and adds what they report. `ir`: the kernel's LLVM IR for the
/// backend, as dump_stage() prints it. Refers to all three.
ptx_sim::Runner runner(const Kernel&, const std::string& ir, Report&);

Outcome check_case(const Kernel&, const std::string& ir, const cuda::CallCase&, uint64_t seed);
Outcome check_rows(const Kernel&, const std::string& ir, const ptx_sim::RowsCase&, uint64_t seed);

} // namespace deepgen::amd_sim
