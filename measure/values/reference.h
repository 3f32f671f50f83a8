// The f64 reference that every candidate is held against, and how far from it a correct result may be.
//
// Tolerance. With u the unit roundoff of the type (2^-24, 2^-53), the sum of K products in any order has an
// error of at most gamma_K |a|.|b|, gamma_K = K u / (1 - K u) (Higham, Accuracy and Stability of Numerical
// Algorithms, 3.5); for data with independent roundings it is lambda sqrt(K) u |a|.|b| with a probability
// that falls as exp(-lambda^2 / 2) (Higham and Mary, SIAM J. Sci. Comput. 41, 2019). |a|.|b| <= ||a|| ||b||
// (2-norms) is cheap for every element. Hence
//   before the epilogue:     u [ (8 + 4 sqrt(K)) |alpha| ||a_i|| ||b_j|| + 8 |beta c_ij| ]
// and then step by step, from a value x with the tolerance t:
//   see tolerance_after() in operands.cpp
// With a gate, from g +- t_g and y +- t_y, each as before the epilogue without c: f(g) +- t_f by the table,
// and
//   f(g) y                   |y| t_f + (|f(g)| + t_f) t_y + 2 u |f(g) y| + 8 u |beta c|
// Sums of integers are exact: 4 u |alpha| ||a_i|| ||b_j|| for their conversion, and none at all with an i32
// D. Behind the epilogue comes the rounding to D where that is narrower: half a unit in the last place, 2^-8
// (bf16) or 2^-11 (f16) of the value, 1/2 for i8, whose values are saturated. And the smallest normal number
// for underflow, of the result and of each exponential. 4 sqrt(K) + 8 exceeds K up to K = 30, so that short
// sums have the deterministic bound. With values in [-1, 1), ||a|| ||b|| is about K / 3 and one lost product
// is about 1/4, largest near 1 in a matrix: the bound for f32 reaches 1/4 near K = 20000, so a kernel that
// drops one k is caught well beyond a few thousand.
#pragma once

#include "measure/values/inputs.h"

namespace deepgen {

/// Operands of which all batch entries use the first one's matrix.
struct Broadcast {
  bool inputs = false;   ///< A and B
  bool matrices = false; ///< C, residual and multiplier
};

/// Expected values of the checked rows of D and their tolerances, `rows x n`, row-major.
struct Expected {
  std::vector<double> value;
  std::vector<double> tolerance;
};

class Reference {
public:
  /// Computes the product. Problems above 20 GFLOP or 32 M elements are sampled: the first and last row and
  /// seeded runs of 32 neighbouring rows, so that the borders of every register tile are among them.
  Reference(const Gemm&, const Inputs&, uint64_t seed);

  /// Indices into the batch * m rows of D, ascending.
  const std::vector<int64_t>& rows() const { return rows_; }
  bool sampled() const { return int64_t(rows_.size()) < problem_.m * problem_.batch; }
  /// `broadcast` is only for problems that are not sampled.
  Expected expected(double alpha, double beta, Broadcast broadcast = {}) const;

private:
  void multiply_entry(int64_t entry, size_t begin, size_t end);
  void measure_norms();

  const Gemm problem_, ungated_;
  const Inputs& inputs_;
  std::vector<int64_t> rows_;
  std::vector<double> product_;           ///< rows x n of ungated_
  std::vector<double> a_norms_, b_norms_; ///< of the checked rows; of the columns of each batch entry
};

/// How the output compares: `error` is the largest |d - expected| / tolerance (<= 1 passes), with its place
/// in words when it fails. Rows that were not computed must at least be finite.
struct Comparison {
  double error = 0;
  std::string detail;
  bool ok() const { return detail.empty(); }
};

/// `row(entry, r)` are the rows of D, of type problem.d.
template <typename Row>
Comparison compare(const Gemm& p, const std::vector<int64_t>& rows, const Expected& expected, Row row);

Comparison compare_row(const Gemm&, int64_t index, const char* data, const double* value,
                       const double* tolerance);
Comparison check_finite(const Gemm&, int64_t index, const char* data);

template <typename Row>
Comparison compare(const Gemm& p, const std::vector<int64_t>& rows, const Expected& expected, Row row) {
  Comparison worst;
  size_t next = 0;
  for (int64_t index = 0; index < p.m * p.batch; ++index) {
    const char* data = row(index / p.m, index % p.m);
    Comparison one;
    if (next < rows.size() && rows[next] == index) {
      const size_t at = next++ * size_t(p.n);
      one = compare_row(p, index, data, &expected.value[at], &expected.tolerance[at]);
    } else {
      one = check_finite(p, index, data);
    }
    if (one.error > worst.error || (!one.ok() && worst.ok())) worst = one;
  }
  return worst;
}

} // namespace deepgen
