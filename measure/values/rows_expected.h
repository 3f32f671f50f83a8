// What one row must become: in f64, with the error that a kernel may make that computes in f32.
//
// u is 2^-24. Sums of N terms have an error of (8 + sqrt N) u of the sum of magnitudes, as in
// cuda_tolerance.h. X + residual has u of itself. From there errors are followed to the first order:
//   softmax: exp(t) of t = x - max has the error of t, 2 u |t| for the difference and its product with log2
//   e,
//     and 4 u; the sum has that of its terms, weighted.
//   log_softmax: the logarithm of the sum has the sum's relative error, and 4 u for itself.
//   layer_norm: a mean that is off by its own rounding is seen as 0 in the deviations, as kernels correct it.
//     What is left is the rounding of deviations and of their sum.
//   rms_norm: as a sum of squares.
// Results below the smallest normal f32 may be 0.
#pragma once

#include "base/problem/rows.h"

#include <vector>

namespace deepgen {

/// The values of one row's operands, exact; those that the problem does not have are null.
struct RowInputs {
  const double *x = nullptr, *residual = nullptr, *scale = nullptr, *bias = nullptr;
  double epsilon = 0;
};

class ExpectedRow {
public:
  ExpectedRow(const Rows&, const RowInputs&);

  /// How far what a kernel stored is from that, in tolerances: above 1 it is wrong. D and the residual output
  /// are as decoded.
  double error_of_d(int64_t n, double found) const;
  double error_of_residual(int64_t n, double found) const;
  double error_of_scale(double found) const;
  /// "0.5 +- 1e-7"
  std::string text_of_d(int64_t n) const;

private:
  void softmax(bool logarithm);
  void layer_norm(double epsilon);
  void rms_norm(double epsilon);
  void quantise();
  double sum_error(double magnitude) const;

  Rows p_;
  std::vector<double> z_, dz_; ///< X + residual
  std::vector<double> y_, dy_; ///< D ahead of its rounding, and its error
  double row_scale_ = 0, row_scale_error_ = 0;
};

} // namespace deepgen
