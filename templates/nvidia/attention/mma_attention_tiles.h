// Tiles of Q, keys and values in shared memory: how they get there from rows in global memory, and how
// ldmatrix reads them.
#pragma once

#include "templates/ir/nv_ir.h"
#include "templates/nvidia/mma_sync/mma_sync_fragments.h"

namespace deepgen {

/// Copies rows into a tile, in pieces of 16 bytes: by cp.async where they are aligned, else element by
/// element, of which those of e4m3 become f16.
class RowFill {
public:
  /// In memory; the tile's rows may be longer, and end with zeros.
  struct Source {
    Type type;
    int64_t elements;
  };
  RowFill(NvIr&, const SharedTile&, Source row, int64_t threads, int64_t align);

  /// Where the thread's first piece of a tile lies whose first row is there.
  Value start(Value first_row, Value pitch) const;
  /// The same, so many rows further on: whole tiles, where these are whole passes. As copy() does, it counts
  /// by the rows of a pass, so that a loop keeps one distance.
  Value advanced(Value start, Value rows, Value pitch) const;
  bool has_whole_passes() const { return tile_.rows % step_ == 0; }
  /// Starts copying rows `pitch` bytes apart. Those from `left` on (i32, any sign) become zeros and are not
  /// read.
  void copy(Value tile, Value left, Value start, Value pitch) const;
  /// The same, of rows anywhere.
  void copy(Value tile, Value left, const std::function<Value(Value row)>& address) const;
  /// The same, where addresses are read from memory: of all passes, ahead of the first copy.
  void copy_from_table(Value tile, Value left, const std::function<Value(Value row)>& address) const;

private:
  int64_t row_of(int64_t pass) const { return pass * step_; }
  void piece(int64_t pass, Value tile, Value left, Value from) const;
  void piece_by_elements(Value to, Value inside, Value from) const;
  Value source_column() const; ///< bytes in memory

  NvIr& ir_;
  const SharedTile& tile_;
  const Source row_of_memory_;
  const bool by_elements_;
  const int64_t in_row_; ///< pieces
  const int64_t step_;   ///< rows that the block's threads copy at once
  const int64_t passes_;
  Value row_, column_; ///< of a thread's first piece: row, and bytes in it
  Value works_;        ///< i1: the thread has a piece in each pass; null: all have
  Value width_;        ///< i32: bytes of the piece that are in memory; null: 16
  Values places_;      ///< offsets in the tile, of as many passes as differ by more than whole rows
};

/// Reads fragments by ldmatrix: four matrices of 8 x 8 at once, whose rows are 16 rows of the tile, and whose
/// columns 32 bytes. What does not change from tile to tile is computed at construction.
class MatrixReader {
public:
  enum Order {
    rows_first,   ///< the second matrix lies below the first: A, and a transposed B
    columns_first ///< it lies behind it: B with K contiguous
  };
  /// Tiles begin at multiples of 128 bytes.
  MatrixReader(NvIr&, const SharedTile&, Value first_row, Order, bool transposed);
  Values read(Value tile, int64_t row, int64_t column_bytes) const;

private:
  NvIr& ir_;
  const SharedTile& tile_;
  const bool transposed_;
  const int64_t period_; ///< bytes of a row after which the permutation repeats
  /// By 32 bytes of it; or one, where rows are whole periods: the others have some other bits in its place.
  Values offsets_;
};

} // namespace deepgen
