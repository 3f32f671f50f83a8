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

Value TileFill::row_less(const Piece& piece, Value limit) const {
  // Against a constant, so that the pieces of a thread share one difference.
  return ir_.less(ir_.sub(piece.row, limit), -piece.row_offset);
}

Value TileFill::column_less(const Piece& piece, Value limit) const {
  return ir_.less(piece.column, ir_.mul(limit, tile_.element));
}

Value TileFill::inside_extent(const Piece& piece, Value extent_left) const {
  if (!extent_left) return nullptr;
  return tile_.k_contiguous ? row_less(piece, extent_left) : column_less(piece, extent_left);
}

Value TileFill::inside_k(const Piece& piece, Value k_left) const {
  if (!k_left) return nullptr;
  return tile_.k_contiguous ? column_less(piece, k_left) : row_less(piece, k_left);
}

Values TileFill::begin(Value stage, Value tile, Value k_left) const {
  Values registers;
  Value at, extent_left = extent_left_;
  // Comparisons would leave the loop, and take a register each, if LLVM knew that this is always the same.
  if (extent_left) extent_left = ir_.assembly(ir_.i32, "mov.b32 $0, $1;", "=r,r", extent_left, true);
  auto both = [&](Value x, Value y) { return x && y ? ir_.both(x, y) : x ? x : y; };
  for (const Piece& piece : pieces_) {
    at = address(piece, tile, at);
    Value wanted = both(piece.exists, inside_extent(piece, extent_left)), in_k = inside_k(piece, k_left);
    if (!through_registers(width_)) {
      Value to = ir_.offset(stage, piece.shared);
      Value bytes = in_k ? ir_.select(in_k, ir_.c(width_), ir_.c(0)) : Value();
      if (wanted)
        ir_.copy_async_if(wanted, to, at, width_, bytes);
      else
        ir_.copy_async(to, at, width_, bytes);
      continue;
    }
    Value inside = both(wanted, in_k);
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
