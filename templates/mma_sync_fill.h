// Copies an operand's tiles from global into shared memory: by cp.async in pieces of 16, 8 or 4 bytes, or
// element by element through registers where rows are less aligned than that.
#pragma once

#include "templates/mma_sync_fragments.h"

namespace deepgen {

class TileFill {
public:
  struct Source {
    Value base;     ///< of the batch entry's matrix
    Value pitch;    ///< bytes from row to row, i64
    Value first;    ///< of the block's rows of A or columns of B
    int64_t extent; ///< M or N
    Value k_first;  ///< the block's first step of K
    int64_t k_step; ///< tiles of K from one of the block's to the next
  };
  TileFill(GpuIr&, const SharedTile&, int64_t threads, int64_t align, const Source&);

  /// Pieces of a tile that each thread copies.
  static int64_t pieces(const SharedTile&, int64_t threads, int64_t align);
  /// Whether a thread's pieces lie at equal distances.
  static bool regular(const SharedTile&, int64_t threads, int64_t align);
  static bool through_registers(int64_t align) { return align < 4; }

  Value start() const;          ///< address of the first tile
  Value next(Value tile) const; ///< address of the tile after it
  /// Starts copying. `k_left`: elements of K from the tile's first on, not negative; null: no fewer than a
  /// tile. What lies beyond K is zero; what lies beyond M or N is anything, as nobody reads the sums that it makes.
  /// Returns what finish() stores, when the copy goes through registers.
  Values begin(Value stage, Value tile, Value k_left) const;
  void finish(Value stage, mlir::ValueRange registers) const;

private:
  struct Piece {
    Value shared;       ///< offset in the stage
    Value row, column;  ///< in the tile; column in bytes
    int64_t row_offset; ///< to be added to `row`
    Value offset;       ///< from the tile's address, i64; null: one step beyond the piece before
    Value exists;       ///< i1: fewer pieces than threads; null: always
  };
  /// Whether a piece lies inside along M or N, and along K; null: yes. None lies there in part: rows, and steps of K, are
  /// whole numbers of pieces where this alignment is legal.
  Value inside_extent(const Piece&, Value extent_left) const, inside_k(const Piece&, Value k_left) const;
  Value row_less(const Piece&, Value limit) const, column_less(const Piece&, Value limit) const;
  Value address(const Piece&, Value tile, Value previous) const;

  GpuIr& ir_;
  const SharedTile& tile_;
  const Source source_;
  const int64_t width_;
  Value step_;        ///< bytes from the rows of one piece to those of the next, i64
  Value extent_left_; ///< of M or N in the tile; null: all of it
  llvm::SmallVector<Piece> pieces_;
};

} // namespace deepgen
