// MatrixFill: one operand's way from global memory through registers to LDS.
#pragma once

#include "templates/amd/amd_matrix.h"
#include "templates/ir/amd_ir.h"

#include <map>

namespace deepgen {

/// The tiles of one operand that a block needs, each thread's share of them in pieces. Where a thread is in
/// the operand ("place") is a pointer for each of its pieces; or, with buffer loads, one offset that all
/// threads share, as what differs among their pieces is the same for all tiles. Pointers need no alignment
/// beyond the elements': CDNA's loads take any.
class MatrixFill {
public:
  /// `operand`: of the batch entry; `pitch`: bytes from one stored row to the next, i64; `first`: the block's
  /// first row or column of D; `size`: M or N; `depth`: K; `columns`: this is B, whose rows in LDS are in the
  /// order of MatrixShape::row_of_column().
  MatrixFill(AmdIr&, const MatrixTiling&, const MatrixSide&, Value operand, Value pitch, Value first,
             const SizeValue& size, const SizeValue& depth, bool columns);

  /// The place of the tile at k (i32); and that `steps` (i32: 0 or 1) tiles further.
  Values start(Value k);
  Values advance(const Values& place, Value steps);

  /// What one thread has in flight: registers as they come from memory.
  int64_t loads() const { return side_.per_thread * lines(); }
  int64_t lines() const { return side_.k_contiguous ? 1 : side_.k; } ///< loads of one piece
  Value load(const Values& place, int64_t i);                        ///< 0 <= i < loads()
  /// All of them; elements at `limit` (i32) and beyond, counted from the tile's first k, are zero and are not
  /// read.
  Values load_below(const Values& place, Value limit, int64_t k_of_problem);

  /// Piece i straight to the stage at `slot`: AmdIr::copy_to_shared().
  void copy(const Values& place, int64_t i, Value slot);

  int64_t writes() const { return side_.per_thread; }
  /// Writes piece i to the stage at `slot` (bytes, i32).
  void write(const Values& loaded, int64_t i, Value slot);

private:
  struct Place {
    int64_t k, x;
  };
  void find_buffer(const SizeValue& depth);
  void find_whole_pieces();
  void find_parts_of_columns();
  void add_piece(Value x, Value k); ///< in the tile
  /// `bytes` of row `line` of piece i, if `inside` (null: always); zeros otherwise.
  Value load(mlir::Type, const Values& place, int64_t i, int64_t line, int64_t bytes, Value inside);
  Place place(int64_t i) const; ///< of a part of columns: what of its place in the tile is constant
  int64_t row(int64_t x) const { return columns_ ? t_.shape.row_of_column(x, t_.paired) : x; }
  Value address(int64_t row, int64_t k_bytes); ///< in stage 0, of a constant place beside the thread's
  mlir::Type raw(int64_t bytes) const;
  Value staged(Value elements); ///< as LDS holds them
  Value widened(Value e4m3_or_e5m2);
  Value as_bf16(Value halves);

  AmdIr& ir;
  const MatrixTiling& t_;
  const MatrixSide side_;
  const SizeValue size_;
  const bool columns_;
  Value operand_, pitch_, first_;
  Value buffer_, pitch32_; ///< with buffer loads
  Value thread_;
  Value lds_;                        ///< where the thread's first row, or piece, is in stage 0
  Value lds_k_;                      ///< bytes along that row
  Value wave_lds_;                   ///< where the wave's first piece is in stage 0
  std::map<int64_t, Value> shifted_; ///< lds_ with lds_k_ of other swizzles
  Values rows_;                      ///< the pieces' addresses, or offsets in the buffer, at k = 0
  Values k_;                         ///< where in the tile they begin along K
};

} // namespace deepgen
