// Tiles of keys and values in LDS: how they get there from rows in global memory, and how a lane reads what
// it multiplies. Elements have two bytes.
#pragma once

#include "templates/amd/lds_swizzle.h"
#include "templates/ir/value.h"

#include <functional>

namespace deepgen {

/// Rows of whole steps of 64 bytes. They lie in slabs of 128 bytes of each row where that divides them, else
/// of 64, whose pieces of 16 bytes are swizzled.
struct LdsTile {
  LdsTile(int64_t tile_rows, int64_t bytes_of_row, int64_t lds_bytes_at_a_time)
      : rows(tile_rows), row_bytes(bytes_of_row), width(bytes_of_row % 128 == 0 ? 128 : 64),
        swizzle{width, lds_bytes_at_a_time} {}

  int64_t rows, row_bytes, width;
  LdsSwizzle swizzle;

  int64_t bytes() const { return rows * row_bytes; }
  int64_t slab_bytes() const { return rows * width; }
  /// Of 16 bytes of a row.
  Value address(GpuIr&, Value row, Value piece) const;
};

/// Reads 16 rows of a tile, a step of 64 bytes at a time: lane l row l % 16, and there 16 bytes, those of l /
/// 16.
class LdsReader {
public:
  LdsReader(AmdIr&, const LdsTile&);
  Value read(Value tile, int64_t rows_of_16, int64_t step) const;

private:
  AmdIr& ir_;
  const LdsTile& tile_;
  Values lane_; ///< the lane's place, for each step of a slab
};

/// Rows in global memory: side by side, or each anywhere.
struct SourceRows {
  Value first, pitch;                       ///< where the first one is, and bytes to the next: i64
  std::function<Value(Value row)> address;  ///< null: side by side
  std::function<Value(Value row)> is_valid; ///< i1; null: all are. Others are read, but count as zeros
  Value at(GpuIr&, Value row) const;
};

/// Brings rows into a tile as they are.
class RowCopy {
public:
  /// `elements` of a row in memory; the tile's rows may be longer, and end with zeros.
  RowCopy(AmdIr&, const LdsTile&, int64_t elements, int64_t threads);
  int64_t passes() const { return passes_; }
  /// What the thread has of them, 16 bytes each.
  Values load(const SourceRows&) const;
  void write(Value tile, mlir::ValueRange loaded) const;
  /// 16 bytes of a row that begins there, from element `column` on. Elements behind the row's last are zeros,
  /// and not read.
  static Value piece(AmdIr&, Value row, Value column, int64_t elements, int64_t longest);

  /// Registers of a thread, for a tile.
  static int64_t registers(const LdsTile&, int64_t threads);

private:
  bool is_ragged(int64_t pass) const { return (pass + 1) * step_ > tile_.rows; }
  Value row(int64_t pass) const;

  AmdIr& ir_;
  const LdsTile& tile_;
  const int64_t elements_, threads_;
  const int64_t in_row_; ///< pieces
  const int64_t step_;   ///< rows of a pass
  const int64_t passes_;
  Value row_, piece_; ///< of a thread's first piece
  Value works_;       ///< i1: the thread has one; null: all have
};

/// Brings rows into a tile transposed: rows of the tile are columns. Keys are in the order of
/// MfmaAttentionTiling::value.
class ColumnCopy {
public:
  ColumnCopy(AmdIr&, const LdsTile&, int64_t elements, int64_t threads);
  int64_t loads() const { return kRows * blocks_; }
  mlir::Type loaded_type() const;
  Values load(const SourceRows&) const;
  void write(Value tile, mlir::ValueRange loaded) const;

  static int64_t registers(const LdsTile&, int64_t elements, int64_t threads);

private:
  static constexpr int64_t kRows = 8; ///< that make a piece of a column
  /// Elements of a row that a thread takes at once: as many as divide all of them, up to 16 bytes, and leave
  /// no thread without work.
  static int64_t width_of(const LdsTile&, int64_t elements, int64_t threads);
  Value column(int64_t block) const;

  AmdIr& ir_;
  const LdsTile& tile_;
  const int64_t elements_, threads_, width_;
  const int64_t pieces_; ///< of 8 keys in a row of the tile
  const int64_t blocks_; ///< of 8 rows by `width_` columns, of a thread
  Value piece_, first_row_, first_column_;
};

} // namespace deepgen
