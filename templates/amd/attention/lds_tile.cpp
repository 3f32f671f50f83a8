#include "templates/amd/attention/lds_tile.h"

#include "templates/core/sizes.h"
#include "templates/ir/amd_ir.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr int64_t kElement = 2, kPiece = 16, kInPiece = kPiece / kElement;

/// The largest power of two, up to a piece, that divides x.
int64_t dividing(int64_t x) { return std::min(kInPiece, x & -x); }

mlir::Type raw(GpuIr& ir, int64_t elements) {
  return elements == 1 ? mlir::Type(ir.i16) : ir.lanes(elements / 2, ir.i32);
}

} // namespace

Value LdsTile::address(GpuIr& ir, Value row, Value piece) const {
  const int64_t in_slab = width / kPiece;
  Value slab = ir.divide(piece, in_slab), own = ir.remainder(piece, in_slab);
  Value at = ir.add(ir.mul(row, width), ir.mul(ir.bit_xor(own, swizzle.of(ir, row)), kPiece));
  return row_bytes == width ? at : ir.add(at, ir.mul(slab, slab_bytes()));
}

LdsReader::LdsReader(AmdIr& ir, const LdsTile& tile) : ir_(ir), tile_(tile) {
  Value lane = ir.wave_lane(), row = ir.bit_and(lane, 15), group = ir.shift_right_bits(lane, 4);
  Value turned = ir.bit_xor(group, tile.swizzle.of(ir, row)), at = ir.mul(row, tile.width);
  for (int64_t step = 0; step < tile.width / 64; ++step)
    lane_.push_back(ir.add(at, ir.mul(ir.bit_xor(turned, 4 * step), kPiece)));
}

/// Rows that are a multiple of 16 apart have the same swizzle.
Value LdsReader::read(Value tile, int64_t rows_of_16, int64_t step) const {
  const int64_t in_slab = tile_.width / 64, slab = step / in_slab;
  Value at = ir_.offset(tile, lane_[size_t(step % in_slab)]);
  at = ir_.offset(at, slab * tile_.slab_bytes() + rows_of_16 * 16 * tile_.width);
  return ir_.load(ir_.lanes(4, ir_.i32), at, kPiece);
}

Value SourceRows::at(GpuIr& ir, Value row) const {
  return address ? address(row) : ir.offset(first, ir.mul(ir.to_i64(row), pitch));
}

RowCopy::RowCopy(AmdIr& ir, const LdsTile& tile, int64_t elements, int64_t threads)
    : ir_(ir), tile_(tile), elements_(elements), threads_(threads), in_row_(tile.row_bytes / kPiece),
      step_(threads / in_row_), passes_(ceil_div(tile.rows, step_)) {
  Value thread = ir.thread();
  row_ = ir.divide(thread, in_row_), piece_ = ir.remainder(thread, in_row_);
  if (step_ * in_row_ == threads) return;
  works_ = ir.less(row_, step_);
  row_ = ir.min(row_, ir.c(step_ - 1));
}

int64_t RowCopy::registers(const LdsTile& tile, int64_t threads) {
  return 4 * ceil_div(tile.rows, threads / (tile.row_bytes / kPiece));
}

Value RowCopy::piece(AmdIr& ir, Value row, Value column, int64_t elements, int64_t longest) {
  const int64_t width = dividing(elements);
  mlir::Type type = raw(ir, width);
  Value bytes = ir.mul(column, kElement);
  Values parts;
  for (int64_t i = 0; i < kInPiece; i += width) {
    Value at = ir.offset(ir.offset(row, bytes), i * kElement);
    if (elements == longest) {
      parts.push_back(ir.load(type, at, kElement));
      continue;
    }
    Value inside = ir.less(column, elements - i);
    Value loaded = ir.load(type, ir.select(inside, at, row), kElement);
    parts.push_back(ir.select(inside, loaded, ir.zero(type)));
  }
  if (parts.size() == 1) return parts[0];
  Values all;
  for (Value part : parts) all.append(ir.unpack(ir.bitcast(ir.lanes(width, ir.i16), part)));
  return ir.bitcast(ir.lanes(4, ir.i32), ir.pack(all));
}

Value RowCopy::row(int64_t pass) const { return ir_.add(row_, pass * step_); }

Values RowCopy::load(const SourceRows& from) const {
  Value column = ir_.mul(piece_, kInPiece), at;
  Values out;
  for (int64_t pass = 0; pass < passes_; ++pass) {
    if (is_ragged(pass))
      at = from.at(ir_, ir_.min(row(pass), ir_.c(tile_.rows - 1)));
    else if (pass && !from.address)
      at = ir_.offset(at, ir_.mul(from.pitch, step_));
    else
      at = from.at(ir_, row(pass));
    out.push_back(piece(ir_, at, column, elements_, tile_.row_bytes / kElement));
  }
  return out;
}

void RowCopy::write(Value tile, mlir::ValueRange loaded) const {
  for (int64_t pass = 0; pass < passes_; ++pass) {
    const auto store = [&] {
      ir_.store(loaded[size_t(pass)], ir_.offset(tile, tile_.address(ir_, row(pass), piece_)), kPiece);
    };
    Value wanted = works_;
    if (is_ragged(pass)) {
      Value inside = ir_.less(row(pass), tile_.rows);
      wanted = wanted ? ir_.both(wanted, inside) : inside;
    }
    if (wanted)
      ir_.branch(wanted, store);
    else
      store();
  }
}

int64_t ColumnCopy::width_of(const LdsTile& tile, int64_t elements, int64_t threads) {
  int64_t width = dividing(elements);
  while (width > 2 && tile.rows / width * (tile.row_bytes / kPiece) < threads) width /= 2;
  return width;
}

int64_t ColumnCopy::registers(const LdsTile& tile, int64_t elements, int64_t threads) {
  const int64_t width = width_of(tile, elements, threads), each = std::max<int64_t>(1, width / 2);
  return kRows * each * ceil_div(tile.rows / width * (tile.row_bytes / kPiece), threads);
}

ColumnCopy::ColumnCopy(AmdIr& ir, const LdsTile& tile, int64_t elements, int64_t threads)
    : ir_(ir), tile_(tile), elements_(elements), threads_(threads), width_(width_of(tile, elements, threads)),
      pieces_(tile.row_bytes / kPiece), blocks_(ceil_div(tile.rows / width_ * pieces_, threads)) {
  // Lanes side by side have pieces of one row of the tile, which lie in different banks.
  Value thread = ir.thread();
  piece_ = ir.remainder(thread, pieces_), first_column_ = ir.mul(ir.divide(thread, pieces_), width_);
  first_row_ = ir.add(ir.mul(ir.shift_right_bits(piece_, 2), 32), ir.mul(ir.bit_and(piece_, 3), 4));
}

mlir::Type ColumnCopy::loaded_type() const { return raw(ir_, width_); }

Value ColumnCopy::column(int64_t block) const {
  return ir_.add(first_column_, block * (threads_ / pieces_) * width_);
}

/// Beyond the last column some are read again: what comes of them is not stored.
Values ColumnCopy::load(const SourceRows& from) const {
  Values rows, valid, out;
  for (int64_t i = 0; i < kRows; ++i) {
    const int64_t number = i % 4 + 16 * (i / 4);
    Value row = ir_.add(first_row_, number);
    if (i && !from.address)
      rows.push_back(ir_.offset(rows[0], ir_.mul(from.pitch, number)));
    else
      rows.push_back(from.at(ir_, row));
    if (from.is_valid) valid.push_back(from.is_valid(row));
  }
  for (int64_t block = 0; block < blocks_; ++block) {
    Value first = ir_.min(column(block), ir_.c(elements_ - width_)), bytes = ir_.mul(first, kElement);
    for (size_t i = 0; i < rows.size(); ++i) {
      Value x = ir_.load(loaded_type(), ir_.offset(rows[i], bytes), kElement);
      out.push_back(valid.empty() ? x : ir_.select(valid[i], x, ir_.zero(loaded_type())));
    }
  }
  return out;
}

void ColumnCopy::write(Value tile, mlir::ValueRange loaded) const {
  for (int64_t block = 0; block < blocks_; ++block) {
    Value first = column(block);
    const auto store = [&] {
      std::vector<Values> rows;
      for (int64_t i = 0; i < kRows; ++i)
        rows.push_back(
            ir_.unpack(ir_.bitcast(ir_.lanes(width_, ir_.i16), loaded[size_t(block * kRows + i)])));
      for (int64_t i = 0; i < width_; ++i) {
        Values piece;
        for (const Values& row : rows) piece.push_back(row[size_t(i)]);
        ir_.store(ir_.pack(piece), ir_.offset(tile, tile_.address(ir_, ir_.add(first, i), piece_)), kPiece);
      }
    };
    if ((block + 1) * threads_ > tile_.rows / width_ * pieces_)
      ir_.branch(ir_.less(first, tile_.rows), store);
    else
      store();
  }
}

} // namespace deepgen
