// Seeded operand values of rows, as stored and dense.
#pragma once

#include "base/problem/rows.h"
#include "measure/values/inputs.h"
#include "measure/values/loader.h"

namespace deepgen {

/// What a call of rows gets, sizes in elements.
struct RowsCall {
  const void *x = nullptr, *residual = nullptr, *scale = nullptr, *bias = nullptr;
  void *d = nullptr, *residual_out = nullptr;
  float* row_scales = nullptr;
  int64_t ldx = 0, ld_residual = 0, ldd = 0, ld_residual_out = 0;
  double epsilon = 0;
  void* workspace = nullptr;
};
SlotValues values_of(const RowsCall&);

/// Rows of X that rounding, ranges and special values make hard; plain is uniform in [-4, 4). All that
/// verifies kernels of rows takes its special rows from here, on a CPU, a GPU and a simulated one.
enum class RowFlavour {
  plain,
  peak_last,  ///< the last column outweighs all others, and overflows exp
  peak_first, ///< the same with the first
  far_mean,   ///< 1000 and a deviation of 1
  step,       ///< the first half about 1000, the other about 0: parts of the row have other means than all
  wide,       ///< +-10000
  zeros,
  constant,  ///< 3: no deviation
  holes,     ///< -inf here and there
  no_weight, ///< -inf alone
  nan,       ///< one, in the last column
  only_nan,  ///< some, and nothing else but -inf
  infinity,  ///< one, in the first column
  tiny,      ///< 2^-100; of f16: its subnormal numbers
  count
};
/// Of X in that column, where `y` is uniform in [-1, 1).
double flavoured(RowFlavour, Type, int64_t column, int64_t columns, double y);

/// The scale is of a magnitude from [0.5, 2) and either sign, bias and residual are uniform in [-1, 1).
struct RowsInputs {
  PageBuffer x, residual, scale, bias;
  double epsilon = 0.125; ///< so great that its lack shows

  /// Row m is of flavour (m + first) mod the count of flavours; all are plain where `first` is negative.
  RowsInputs(const Rows&, uint64_t seed, int first = -1);
};

} // namespace deepgen
