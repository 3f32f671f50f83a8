// Copies an operand's tiles from global into shared memory: by cp.async in pieces of 16, 8 or 4 bytes. Rows
// that are less aligned go through registers by words: a word of the tile is a funnel shift of the two
// aligned words in which it lies.
#pragma once

#include "templates/gpu/gpu_sizes.h"
#include "templates/nvidia/mma_sync/mma_sync_fragments.h"

namespace deepgen {

class TileFill {
public:
  struct Source {
    Value base;          ///< of the batch entry's matrix
    Value pitch;         ///< bytes from row to row, i64
    Value first;         ///< of the block's rows of A or columns of B
    SizeValue extent;    ///< M or N
    Value k_first;       ///< the block's first step of K
    int64_t k_step;      ///< tiles of K from one of the block's to the next
    Value end = nullptr; ///< i32: where rows end that the block may read; null: at the extent
  };
  TileFill(NvIr&, const SharedTile&, int64_t threads, int64_t align, const Source&);

  static bool through_registers(int64_t align) { return align < 4; }
  /// Registers of a thread from begin() to finish().
  static int64_t in_flight(const SharedTile&, int64_t threads, int64_t align);
  /// Registers of a thread for where its pieces lie. Many of a copy, or those beside an operand that goes
  /// through registers, are all at hand at once.
  static int64_t for_addresses(const SharedTile&, int64_t threads, int64_t align, int64_t other_align);

  Value start() const { return start_; } ///< address of the first tile
  Value next(Value tile) const;          ///< address of the tile after it
  /// Starts copying. What lies beyond K is zero; what lies beyond M or N is anything, as nobody reads the
  /// sums that it makes. `k_left`: elements of K from the tile's first on, not negative; null: no fewer than
  /// a tile, where copies do not go through registers. Returns what finish() stores.
  Values begin(Value stage, Value tile, Value k_left) const;
  void finish(Value stage, mlir::ValueRange registers) const;
  /// One of `parts` of the copies of a tile that is whole along K, where i1 `wanted`: together what begin()
  /// starts, where copies do not go through registers.
  void begin_part(Value stage, Value tile, Value wanted, size_t part, size_t parts) const;
  /// Asks for a tile that is whole along K; of one that goes through registers it is a hint that does
  /// nothing.
  void prefetch(Value tile) const;

private:
  /// What a thread copies at once.
  struct Layout {
    Layout(const SharedTile&, int64_t threads, int64_t align);
    int64_t width; ///< bytes of a piece
    int64_t in_row, total;
    int64_t count; ///< of a thread; the last ones may not exist
    int64_t rows;  ///< from a piece of a thread to its next one, when they lie in one column; else 0
    int64_t cycle; ///< pieces of a thread after which they repeat, some rows further down
  };
  struct Piece {
    Value shared;       ///< offset in the stage
    Value row, column;  ///< in the tile; column in bytes
    int64_t row_offset; ///< to be added to `row`
    Value offset; ///< from the tile's address, i64, to the word where the piece begins; null: one step beyond
                  ///< an earlier piece
    Value excess; ///< bytes by which that word precedes the piece
    Value exists; ///< i1: fewer pieces than threads; null: always
  };
  void locate(int64_t index, int64_t threads);
  Values addresses(Value tile) const;
  /// Whether a piece lies inside along M or N, and along K; null: yes. None lies there in part: rows, and
  /// steps of K, are whole numbers of pieces where this alignment is legal.
  Value inside_extent(const Piece&, Value extent_left) const, inside_k(const Piece&, Value k_left) const;
  Value row_less(const Piece&, Value limit) const, column_less(const Piece&, Value limit) const;
  Value end() const;
  Value extent_left() const;
  void copy(Value stage, Value tile, Value k_left) const;
  void copy_piece(size_t piece, Value stage, Value at, Value wanted, Value k_left, Value extent_left) const;

  int64_t words() const { return layout_.width / 4 + 1; } ///< aligned ones that a piece lies in
  SizeValue k_whole() const;
  Values load_inner(Value tile) const, load_edge(Value tile, Value k_left) const;
  Value load_word(Value address, Value valid, int64_t index) const;
  Value load_part(Value address, Value valid) const;

  NvIr& ir_;
  const SharedTile& tile_;
  const Source source_;
  const Layout layout_;
  const bool by_words_;
  Value start_;
  Value step_;        ///< bytes from a piece to the one of the next cycle, i64
  Value extent_left_; ///< of M or N from the tile's first on; null: no fewer than a tile
  llvm::SmallVector<Piece> pieces_;
};

} // namespace deepgen
