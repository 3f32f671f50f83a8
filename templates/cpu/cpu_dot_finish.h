// What makes elements of D of sums: alpha, a gate, beta C, the epilogue, the rounding to D's type.
#pragma once

#include "templates/cpu/cpu_words.h"
#include "templates/ir/epilogue.h"

#include <map>

namespace deepgen {

/// Of one tile of D. All is computed in f32, or in i32 where that is D's type.
class DotFinish {
public:
  /// `m`, `n`: of the tile's first element.
  DotFinish(Ir&, Words&, const Gemm&, Value args, Value entry, Value m, Value n, int64_t columns);

  /// Loads what all rows share.
  void prepare();
  /// i1: whether C is read.
  Value reads_c() { return reads_c_; }
  /// i1: whether sums are D as they are, where its type is theirs and it has no epilogue.
  Value stores_sums();
  /// Where an element of D is, and D's leading dimension.
  Value address(Value r, int64_t column) { return element_of(d, r, column); }
  Value ld() const { return d.ld; }
  enum class C { none, read };
  /// Vectors of sums of row r of the tile; with a gate, first those of one weight, then those of the other.
  void row(Value r, const Values& sums, C);

private:
  using Columns = std::map<std::string, Value>;
  Value slot(const std::string& name, mlir::Type);
  Value pointer(const std::string& name) { return slot(name, ir.pointer); }
  Value number(const std::string& name) { return slot(name, ir.i64); }
  /// The address of the tile's first element of a matrix, and its leading dimension.
  struct Matrix {
    Value base, ld;
    Type type = Type::f32;
  };
  Matrix matrix(const std::string& name, const std::string& ld, const std::string& stride, Type);
  Value element_of(const Matrix&, Value r, int64_t column);
  Type type_of(const std::string& operand) const;
  Value single(Type, Value address); ///< one value in all lanes
  int64_t valid(int64_t j) const;
  Columns load_columns(int64_t j);
  Value operand(const EpilogueOperand&, Value r, int64_t j);
  void apply(EpilogueOp, Values& row, Value r);
  void integer_row(Value r, const Values& sums, C);
  void store_bf16(Value r, const Values& row);

  Ir& ir;
  Words& words;
  const Gemm& p;
  Value args, entry, m, n, alpha, beta, reads_c_, scales_;
  const int64_t columns, lanes, vectors; ///< vectors of a row of D
  Matrix c, d;
  std::map<std::string, Matrix> matrices;
  std::map<std::string, Value> values; ///< addresses of rows' operands; what all elements share
  std::vector<Columns> column_values;  ///< by vector
};

} // namespace deepgen
