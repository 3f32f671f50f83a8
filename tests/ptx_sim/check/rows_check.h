// RowsCheck: a kernel of rows on the simulated device, held against an f64 reference row by row
// (measure/values/rows_expected.h).
#pragma once

#include "tests/ptx_sim/check/check.h"

namespace deepgen::ptx_sim {

struct RowsCase {
  const char* name;
  bool padded = false;   ///< gaps between rows, and bases as little aligned as the kernel takes
  bool in_place = false; ///< D is X where their types are equal, and the residual output is the residual
  bool special = false;  ///< rows of each RowFlavour, in turn
};

std::vector<RowsCase> rows_cases();
Outcome check_rows(const Kernel&, const RowsCase&, uint64_t seed);
/// The same on another device.
Outcome check_rows(const Kernel&, const RowsCase&, uint64_t seed, const Runner&);

/// What the seed draws: a shape of a few rows, of which `largest` bounds N, with types, kind and options.
Rows draw_rows(uint64_t seed, int64_t largest);

} // namespace deepgen::ptx_sim
