// Rows: what models do between matrix products: a softmax or a normalisation of every row. A small value with
// one canonical text form.
#pragma once

#include "base/problem/rate.h"
#include "base/problem/types.h"

#include <string_view>

namespace deepgen {

enum class RowsKind {
  softmax,     ///< exp(x - max) / sum of exp(x - max)
  log_softmax, ///< x - max - log(sum of exp(x - max))
  layer_norm,  ///< (x - mean) / sqrt(mean of (x - mean)^2 + epsilon)
  rms_norm     ///< x / sqrt(mean of x^2 + epsilon)
};

/// D[m,:] = kind(X[m,:] + residual[m,:]) * scale[:] + bias[:], each row for itself; matrices are row-major,
/// [M,N], with leading dimensions that a call passes. X, the residual, scale, bias and the residual output
/// have X's type. All is computed in f32 and rounded once, where it is stored (an rms_norm may take X * scale
/// first, which is to stay within f32's range); the residual output is the sum
/// X + residual, rounded, and the row that is normalised is that sum before it is rounded. Special values
/// follow IEEE arithmetic: a softmax of a row with a NaN or +inf, or of -inf alone, is NaN.
/// D may be X or the residual itself, if of one type; the residual output may be that of them which D is not.
/// With an 8-bit D every row is quantised: y is what D would be in f32, row_scales[m] = max |y[m,:]| / most,
/// most being 448 for e4m3 and 127 for i8, and D[m,n] = y[m,n] / row_scales[m], to nearest even, within
/// [-most, most]. A row of zeros has row_scales 0 and zeros. A row with a NaN or an infinity has that as its
/// row_scales, and D as the division says, where a NaN is 0 for i8.
struct Rows {
  int64_t m = 1, n = 1;
  Type x = Type::f32, d = Type::f32;
  RowsKind kind = RowsKind::softmax;
  bool residual = false;        ///< X + residual takes X's place
  bool output_residual = false; ///< and that sum is an output too
  bool scale = false, bias = false;

  bool operator==(const Rows&) const = default;

  bool normalises() const { return kind == RowsKind::layer_norm || kind == RowsKind::rms_norm; }
  /// D has 8 bits, and each row a scale.
  bool quantised() const { return d == Type::e4m3 || d == Type::i8; }
  /// The greatest value of a quantised D: the greatest of the OCP specification's e4m3, and a symmetric i8's.
  double quantised_most() const { return d == Type::e4m3 ? 448 : 127; }
  /// Operations of one call, as the report counts them: those that each element needs if exp and log are one
  /// each. Time is that of memory.
  double flops() const;
  /// Bytes of one call, every operand read, or written, once.
  double bytes() const;
  Rate rate() const { return {bytes(), "GB/s"}; }
  /// How long a call takes on one core, in operations of a GEMM: a core computes ten of them in the time in
  /// which it moves a byte, some 100 GFLOP/s and 10 GB/s.
  double work() const { return 10 * bytes(); }
  /// Bytes; the smallest element among X and D: what every row's start is a multiple of.
  int64_t align() const;

  /// The canonical line, e.g. "rows m=4096 n=2048 x=bf16 d=e4m3 kind=rms_norm options=residual+scale"; no
  /// options: "options=none".
  std::string key() const;
  /// The inverse of key(); throws Error naming the offending field.
  static Rows parse(std::string_view key);
};

inline constexpr int64_t most_row_columns = int64_t(1) << 20;

std::string to_string(RowsKind);

/// Throws Error when M is not in 1 to 2^31, N not in 1 to 2^20, a type is not served (X: f32, f16, bf16; D:
/// those, e4m3 and i8), a scale or bias stands with a softmax, or a residual output without a residual.
void validate(const Rows&);

} // namespace deepgen
