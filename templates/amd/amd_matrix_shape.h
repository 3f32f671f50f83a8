// MatrixShape: one matrix instruction of CDNA (MFMA) or RDNA (WMMA), and what its lanes hold.
//
// The instruction is v_mfma_<...>_SxSxK or v_wmma_<...>_SxSxK: D[S,S] += P[S,K] Q[K,S]. A lane l holds of P
// the row l % S, of Q the column l % S, and of both the same consecutive elements along K, those of group l /
// S; on RDNA 3 all of them, twice in a wave. The templates pass B's columns as P and A's rows as Q, so that
// the values of D that a lane holds are of one row of the problem's D and of columns that can be made
// consecutive: row_of_column() says which row of P a column of B's tile is to be.
#pragma once

#include "base/problem/types.h"
#include "templates/ir/value.h"

#include <algorithm>
#include <vector>

namespace deepgen {

struct MatrixShape {
  /// Of the widest instruction on `arch` (one of AMD's) for elements of these types, as the LDS holds them.
  /// `size`: 16 or 32.
  MatrixShape(const std::string& arch, Type a, Type b, int64_t size);

  std::string name;        ///< of the intrinsic; empty when there is none of this size
  int64_t size = 16;       ///< S
  Type staged = Type::f16; ///< of A's elements in LDS
  int64_t element = 2;     ///< their bytes
  int64_t lane_bytes = 8;  ///< of P, and of Q, that a lane holds
  int64_t values = 4;      ///< of D that a lane holds
  bool doubles = false;
  double rate = 0; ///< operations a cycle and multiprocessor
  int64_t wave = 64;
  int64_t groups = 4; ///< of lanes that share K

  /// Bytes along K of one step, in which each lane reads `pieces` of 16 bytes of a row: one or several
  /// instructions. Which of the elements are multiplied in which of them does not matter as long as P and Q
  /// agree.
  int64_t step_bytes() const { return 16 * pieces() * groups; }
  int64_t pieces() const { return std::max<int64_t>(1, lane_bytes / 16); }
  int64_t instructions() const { return std::max<int64_t>(1, 16 / lane_bytes); } ///< of a step

  /// P's row for column n of a band of S columns, such that the values of a lane are of consecutive columns.
  /// `paired` (S = 16): of a band of 32, two instructions; eight consecutive columns, the first four in the
  /// first one.
  Value row_of_column(GpuIr&, Value n, bool paired) const;
  int64_t row_of_column(int64_t n, bool paired) const;
  Value column_of_row(GpuIr&, Value row, bool paired) const;
  int64_t column_of_row(int64_t row, bool paired) const;

  mlir::Type operand_type(GpuIr&, Type) const;
  mlir::Type sum_type(GpuIr&) const; ///< of the values that a lane holds
  /// p, q: a step's pieces, each as a vector of four i32; the instructions of a step in order.
  Value multiply(AmdIr&, const Value* p, const Value* q, Value sum, int64_t instruction) const;

private:
  /// Bits of a column's number that have another place in the row's.
  struct Field {
    int64_t from, bits, to;
  };
  std::vector<Field> fields(bool paired) const;
  Value operand(AmdIr&, const Value* pieces, int64_t instruction) const;
};

/// The type that an operand's elements have in LDS on the arch. 8-bit floats are widened to f16 where the
/// instructions know only AMD's own formats (gfx942), or none; to bf16 where they take subnormal f16 for
/// zeros (gfx90a) and one of both operands is e5m2, which has the exponents of f16: its own subnormals would
/// be some of f16.
Type staged_type(const std::string& arch, Type, Type other);

} // namespace deepgen
