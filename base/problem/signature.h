// The one table of a problem's operands: what a call passes, in which shape and type. Generated headers, the
// report's traffic, verification and timing read it.
#pragma once

#include "base/problem/problem.h"

#include <optional>
#include <vector>

namespace deepgen {

/// All matrices are row-major.
struct Operand {
  enum class Role {
    in,    ///< memory that a call reads
    out,   ///< memory that it writes
    table, ///< memory that it reads before it knows its work: where groups begin
    scalar ///< passed by value, as a double
  };
  using Shape = StepShape;
  enum class Limit {
    none,
    ascending,   ///< a scalar, at most as large as the one behind it
    not_negative ///< a scalar, finite and at least 0
  };

  /// Which of a kernel's alignments (base/kernel/kernel.h) holds for it; of the element: none.
  enum class Align { element, a, b, d };

  const char*
      name; ///< a literal: as kernels name it (kernel_abi.h) and its field of the arguments: "a", "scale_col"
  Role role = Role::in;
  Shape shape = Shape::matrix;
  Type type = Type::f32;
  int64_t rows = 1, columns = 1; ///< of one entry, as stored; a vector is one row
  int64_t entries = 1;           ///< matrices of a batch, or what each group has of its own
  bool required = true;          ///< false: a call may leave it out, such as C where beta is 0
  bool in_place = false;         ///< a matrix that is read element by element: one that is written may be it
  Limit limit = Limit::none;
  Align align = Align::element;
  /// Of a size that is a range: those above are of the largest call, and a call's are proportional to it.
  std::optional<Size> rows_by = {}, columns_by = {}, entries_by = {};
  bool packed = false; ///< a call takes what deepgen_pack_b() makes of the matrix described above

  bool in_memory() const { return role != Role::scalar; }
  bool is_matrix() const { return shape == Shape::matrix; }
  int64_t count() const { return rows * columns * entries; }
  double bytes() const { return double(rows) * double(columns) * double(entries) * double(size_of(type)); }
  /// The fields and arguments of a matrix's leading dimension and batch stride: "lda", "ld_residual".
  std::string leading_dimension() const { return std::string(name[1] ? "ld_" : "ld") + name; }
  std::string stride() const { return std::string("stride_") + name; }
};

/// a, b, c, d, alpha, beta; then the epilogue's in the order of EpilogueOp, whatever the order of its steps;
/// then offsets.
std::vector<Operand> signature(const Gemm&);
/// x, residual, scale, bias, d, residual_out, row_scales, epsilon; those that the problem has.
std::vector<Operand> signature(const Rows&);
/// q, key, value, out, lse, sink, bias, query_offsets, key_offsets, keys_used, page_table, softcap; those
/// that the problem has. Rows are tokens, entries heads of the batch; how far apart they are, a call says.
std::vector<Operand> signature(const Attention&);
std::vector<Operand> signature(const Problem&);
/// Of one step: one in memory, none, or clamp's two scalars.
std::vector<Operand> operands_of(EpilogueOp, const Gemm&);

} // namespace deepgen
