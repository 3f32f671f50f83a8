#include "templates/mma_sync_fill.h"

namespace deepgen {

int64_t TileFill::pieces(const SharedTile& tile, int64_t threads, int64_t align) {
  return (tile.bytes() / std::min<int64_t>(align, 16) + threads - 1) / threads;
}

bool TileFill::regular(const SharedTile& tile, int64_t threads, int64_t align) {
  const int64_t in_row = tile.row_bytes / std::min<int64_t>(align, 16);
  return threads % in_row == 0 && threads / in_row % tile.period == 0;
}

TileFill::TileFill(GpuIr& ir, const SharedTile& tile, int64_t threads, int64_t align, const Source& source)
    : ir_(ir), tile_(tile), source_(source), width_(std::min<int64_t>(align, 16)) {
  const int64_t in_row = tile.row_bytes / width_, total = tile.bytes() / width_;
  const int64_t rows = threads / in_row;
  const bool equal = regular(tile, threads, align);
  if (equal) step_ = ir.mul(source.pitch, rows);
  for (int64_t i = 0; i < pieces(tile, threads, align); ++i) {
    Value index = ir.add(ir.thread(), i * threads);
    Piece piece{};
    if (i > 0 && equal) {
      piece.row = pieces_[0].row, piece.row_offset = i * rows, piece.column = pieces_[0].column;
      piece.shared = ir.add(pieces_[0].shared, i * rows * tile.row_bytes);
    } else {
      piece.row = ir.divide(index, in_row), piece.column = ir.mul(ir.remainder(index, in_row), width_);
      piece.shared = tile.address(ir, piece.row, piece.column);
      piece.offset = ir.add(ir.mul(ir.to_i64(piece.row), source.pitch), ir.to_i64(piece.column));
    }
    if ((i + 1) * threads > total) piece.exists = ir.less(index, total);
    pieces_.push_back(piece);
  }
  if (source.extent % tile.extent) extent_left_ = ir.sub(ir.c(source.extent), source.first);
}

Value TileFill::start() const {
  Value row = tile_.k_contiguous ? source_.first : source_.k_first;
  Value column = tile_.k_contiguous ? source_.k_first : source_.first;
  Value at = ir_.offset(source_.base, ir_.mul(ir_.to_i64(row), source_.pitch));
  return ir_.offset(at, ir_.mul(ir_.to_i64(column), tile_.element));
}

Value TileFill::next(Value tile) const {
  return tile_.k_contiguous ? ir_.offset(tile, tile_.row_bytes * source_.k_step)
                            : ir_.offset(tile, ir_.mul(source_.pitch, tile_.rows * source_.k_step));
}

Value TileFill::address(const Piece& piece, Value tile, Value previous) const {
  return piece.offset ? ir_.offset(tile, piece.offset) : ir_.offset(previous, step_);
}

TileFill::Left TileFill::left(Value k_left) const {
  Left out{tile_.k_contiguous ? extent_left_ : k_left, tile_.k_contiguous ? k_left : extent_left_};
  if (out.columns) out.columns = ir_.mul(out.columns, tile_.element);
  return out;
}

Value TileFill::inside(const Piece& piece, const Left& left) const {
  Value row, column;
  // Against a constant, so that the pieces of a thread share one difference.
  if (left.rows) row = ir_.less(ir_.sub(piece.row, left.rows), -piece.row_offset);
  if (left.columns) column = ir_.less(piece.column, left.columns);
  return row && column ? ir_.both(row, column) : row ? row : column;
}

Values TileFill::begin(Value stage, Value tile, Value k_left) const {
  const Left limits = left(k_left);
  Values registers;
  Value at;
  for (const Piece& piece : pieces_) {
    at = address(piece, tile, at);
    Value inside = this->inside(piece, limits);
    if (!through_registers(width_)) {
      Value bytes = inside ? ir_.select(inside, ir_.c(width_), ir_.c(0)) : Value();
      auto copy = [&] { ir_.copy_async(ir_.offset(stage, piece.shared), at, width_, bytes); };
      if (piece.exists)
        ir_.branch(piece.exists, copy);
      else
        copy();
      continue;
    }
    if (piece.exists) inside = inside ? ir_.both(inside, piece.exists) : piece.exists;
    mlir::Type type = width_ == 2 ? ir_.i16 : ir_.i8;
    // Elements outside of the matrix are zero; what is read in their stead always exists.
    Value value = ir_.load(type, inside ? ir_.select(inside, at, source_.base) : at, width_);
    registers.push_back(inside ? ir_.select(inside, value, ir_.c(type, 0)) : value);
  }
  return registers;
}

void TileFill::finish(Value stage, mlir::ValueRange registers) const {
  for (size_t i = 0; i < registers.size(); ++i) {
    auto put = [&] { ir_.store(registers[i], ir_.offset(stage, pieces_[i].shared), width_); };
    if (pieces_[i].exists)
      ir_.branch(pieces_[i].exists, put);
    else
      put();
  }
}

} // namespace deepgen
