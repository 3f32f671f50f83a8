// Rows whose operands are equal, as kernels of batch invariant problems give them on a simulated device.
#pragma once

#include "tests/ptx_sim/check/check.h"

namespace deepgen::ptx_sim {

/// A kernel of a problem with a range of M, or with a fixed one; A is not transposed.
struct EqualRowsRun {
  const Kernel& kernel;
  Runner run;
};

/// The bits that the kernel gives for the first row of the operands of a seed, in hex, at several places of
/// calls of each of `rows`, dense and with gaps. Words instead of them where they are not all the same.
std::string equal_rows(const EqualRowsRun&, const std::vector<int64_t>& rows);

} // namespace deepgen::ptx_sim
