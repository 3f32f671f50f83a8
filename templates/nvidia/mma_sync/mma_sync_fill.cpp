#include "templates/nvidia/mma_sync/mma_sync_fill.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "templates/ir/nv_ir.h"

namespace deepgen {

namespace llvmd = mlir::LLVM;

namespace {

/// Of a piece that goes through registers: four words take five loads. Pieces of 4 and 8 bytes, whose loads
/// lie closer together, were slower on an H200 (1001 x 1003 x 997 of bf16).
constexpr int64_t kWordBytes = 16;

Value zero_extended(NvIr& ir, Value x) { return mlir::arith::ExtUIOp::create(ir.b, ir.loc, ir.i32, x); }

/// The word that begins `shift` bits, modulo 32, behind the beginning of `low`.
Value funnel_shift(NvIr& ir, Value low, Value high, Value shift) {
  return llvmd::CallIntrinsicOp::create(ir.b, ir.loc, ir.i32, ir.b.getStringAttr("llvm.fshr.i32"),
                                        mlir::ValueRange{high, low, shift})
      .getResult(0);
}

} // namespace

TileFill::Layout::Layout(const SharedTile& tile, int64_t threads, int64_t align)
    : width(through_registers(align) ? kWordBytes : std::min<int64_t>(align, 16)),
      in_row(tile.row_bytes / width), total(tile.bytes() / width), count((total + threads - 1) / threads),
      rows(threads % in_row ? 0 : threads / in_row), cycle(count) {
  if (rows == 0) return;
  // Four rows further down, a row begins as far from a word as here.
  const int64_t alike = through_registers(align) ? 4 : 1;
  for (cycle = 1; cycle < count && (cycle * rows % tile.period || cycle * rows % alike); ++cycle) {
  }
}

int64_t TileFill::in_flight(const SharedTile& tile, int64_t threads, int64_t align) {
  if (!through_registers(align)) return 0;
  const Layout layout(tile, threads, align);
  // Each piece with its address. Bytes at the end of a matrix, one by one, take some more.
  const int64_t bytes = tile.element == 1;
  return layout.count * (layout.width / 4 + 3 + bytes) + 5 + 8 * bytes;
}

int64_t TileFill::for_addresses(const SharedTile& tile, int64_t threads, int64_t align, int64_t other_align) {
  const Layout layout(tile, threads, align);
  const bool words = through_registers(align);
  const bool together = !words && (layout.count > 16 || through_registers(other_align));
  return 7 * (layout.cycle - 1) + (together ? layout.count : 0);
}

TileFill::TileFill(NvIr& ir, const SharedTile& tile, int64_t threads, int64_t align, const Source& source)
    : ir_(ir), tile_(tile), source_(source), layout_(tile, threads, align),
      by_words_(through_registers(align)) {
  Value row = tile.k_contiguous ? source.first : source.k_first;
  Value column = tile.k_contiguous ? source.k_first : source.first;
  Value at = ir.offset(source.base, ir.mul(ir.to_i64(row), source.pitch));
  start_ = ir.offset(at, ir.mul(ir.to_i64(column), tile.element));
  step_ = ir.mul(source.pitch, layout_.cycle * layout_.rows);
  for (int64_t i = 0; i < layout_.count; ++i) locate(i, threads);
  if (source.end || source.extent.may_leave(tile.extent)) extent_left_ = ir.sub(end(), source.first);
}

void TileFill::locate(int64_t i, int64_t threads) {
  Value index = ir_.add(ir_.thread(), i * threads);
  Piece piece{};
  if (i >= layout_.cycle) {
    piece = pieces_[size_t(i - layout_.cycle)];
    piece.row_offset += layout_.cycle * layout_.rows, piece.offset = nullptr;
    piece.shared = ir_.add(piece.shared, layout_.cycle * layout_.rows * tile_.row_bytes);
  } else {
    piece.row = ir_.divide(index, layout_.in_row);
    piece.column = ir_.mul(ir_.remainder(index, layout_.in_row), layout_.width);
    piece.shared = tile_.address(ir_, piece.row, piece.column);
    piece.offset = ir_.add(ir_.mul(ir_.to_i64(piece.row), source_.pitch), ir_.to_i64(piece.column));
    if (by_words_) {
      // The same in all tiles: from one to the next it is a multiple of 4 bytes, along K as well as by rows.
      Value start = llvmd::PtrToIntOp::create(ir_.b, ir_.loc, ir_.i64, start_);
      piece.excess = ir_.bit_and(ir_.to_i32(ir_.add(start, piece.offset)), 3);
      piece.offset = ir_.sub(piece.offset, ir_.to_i64(piece.excess));
    }
  }
  piece.exists = (i + 1) * threads > layout_.total ? ir_.less(index, layout_.total) : Value();
  pieces_.push_back(piece);
}

Value TileFill::next(Value tile) const {
  return tile_.k_contiguous ? ir_.offset(tile, tile_.row_bytes * source_.k_step)
                            : ir_.offset(tile, ir_.mul(source_.pitch, tile_.rows * source_.k_step));
}

Values TileFill::addresses(Value tile) const {
  Values at;
  for (const Piece& piece : pieces_)
    at.push_back(piece.offset ? ir_.offset(tile, piece.offset)
                              : ir_.offset(at[at.size() - size_t(layout_.cycle)], step_));
  return at;
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

Value TileFill::end() const { return source_.end ? source_.end : ir_.c(source_.extent); }

/// For one tile: comparisons would leave the loop, and take a register each, if LLVM knew that this is always
/// the same.
Value TileFill::extent_left() const {
  if (!extent_left_) return nullptr;
  return ir_.assembly(ir_.i32, "mov.b32 $0, $1;", "=r,r", extent_left_, true);
}

void TileFill::copy_piece(size_t i, Value stage, Value at, Value wanted, Value k_left,
                          Value extent_left) const {
  const Piece& piece = pieces_[i];
  auto both = [&](Value x, Value y) { return x && y ? ir_.both(x, y) : x ? x : y; };
  wanted = both(wanted, both(piece.exists, inside_extent(piece, extent_left)));
  Value in_k = inside_k(piece, k_left), to = ir_.offset(stage, piece.shared);
  Value bytes = in_k ? ir_.select(in_k, ir_.c(layout_.width), ir_.c(0)) : Value();
  if (wanted)
    ir_.copy_async_if(wanted, to, at, layout_.width, bytes);
  else
    ir_.copy_async(to, at, layout_.width, bytes);
}

void TileFill::copy(Value stage, Value tile, Value k_left) const {
  const Values at = addresses(tile);
  Value extent_left = this->extent_left();
  for (size_t i = 0; i < pieces_.size(); ++i) copy_piece(i, stage, at[i], nullptr, k_left, extent_left);
}

void TileFill::begin_part(Value stage, Value tile, Value wanted, size_t part, size_t parts) const {
  const Values at = addresses(tile);
  Value extent_left = this->extent_left();
  for (size_t i = pieces_.size() * part / parts; i < pieces_.size() * (part + 1) / parts; ++i)
    copy_piece(i, stage, at[i], wanted, nullptr, extent_left);
}

void TileFill::prefetch(Value tile) const {
  if (by_words_) return;
  const Values at = addresses(tile);
  Value extent_left = this->extent_left();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    Value inside = inside_extent(pieces_[i], extent_left), wanted = pieces_[i].exists;
    if (inside) wanted = wanted ? ir_.both(wanted, inside) : inside;
    if (wanted)
      ir_.branch(wanted, [&] { ir_.prefetch(at[i]); });
    else
      ir_.prefetch(at[i]);
  }
}

/// Elements of K from a tile on, at least, with which all words of its pieces lie in the matrix: the words of
/// a row reach up to 4 bytes beyond it. Where M or N is contiguous they may lie in rows that follow: enough
/// of them are asked for.
SizeValue TileFill::k_whole() const {
  const int64_t k = (tile_.k_contiguous ? tile_.row_bytes / tile_.element : tile_.rows);
  if (tile_.k_contiguous) return k + 4 / tile_.element;
  const int64_t bytes = tile_.row_bytes + 4;
  if (!source_.extent.is_constant()) { // of dense rows; beyond `bytes` one is enough
    Value pitch = ir_.mul(ir_.min(source_.extent.value(), ir_.c(bytes)), tile_.element);
    return ir_.add(ir_.divide(ir_.c(bytes), pitch), k + 1);
  }
  const int64_t least_pitch = source_.extent.constant() * tile_.element;
  return k + (bytes + least_pitch - 1) / least_pitch;
}

Values TileFill::load_inner(Value tile) const {
  Values at = addresses(tile), out;
  // Rows outside of the matrix, whose products are not stored, are read from the tile's first one.
  Value substitute, rows = tile_.k_contiguous ? extent_left() : Value();
  if (rows) {
    Value start = llvmd::PtrToIntOp::create(ir_.b, ir_.loc, ir_.i64, start_);
    substitute = ir_.offset(tile, ir_.sub(ir_.constant(0), ir_.bit_and(start, 3)));
  }
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (substitute) at[i] = ir_.select(row_less(pieces_[i], rows), at[i], substitute);
    auto load = [&] {
      Values loaded;
      for (int64_t j = 0; j < words(); ++j) loaded.push_back(ir_.load(ir_.i32, ir_.offset(at[i], 4 * j), 4));
      return loaded;
    };
    const llvm::SmallVector<mlir::Type> types(size_t(words()), ir_.i32);
    out.append(pieces_[i].exists ? ir_.branch(pieces_[i].exists, types, load,
                                              [&] { return Values(size_t(words()), ir_.c(0)); })
                                 : load());
  }
  return out;
}

/// The first `valid` bytes, 1 to 3, of a word; the others are zero, and not read: they may not exist.
Value TileFill::load_part(Value address, Value valid) const {
  if (tile_.element == 2) return zero_extended(ir_, ir_.load(ir_.i16, address, 2));
  Value word = zero_extended(ir_, ir_.load(ir_.i8, address, 1));
  for (int64_t i = 1; i < 3; ++i) {
    Value exists = ir_.at_least(valid, i + 1);
    Value byte = ir_.load(ir_.i8, ir_.offset(address, ir_.select(exists, ir_.c(i), ir_.c(0))), 1);
    word = ir_.bit_or(word, ir_.select(exists, ir_.shift_left(zero_extended(ir_, byte), 8 * i), ir_.c(0)));
  }
  return word;
}

/// Word `index` of a piece of which `valid` bytes lie in the matrix, counted from the piece's first word on.
Value TileFill::load_word(Value address, Value valid, int64_t index) const {
  auto whole = [&] { return Values{ir_.load(ir_.i32, address, 4)}; };
  auto part = [&] { return Values{load_part(address, ir_.sub(valid, ir_.c(4 * index)))}; };
  auto none = [&] { return Values{ir_.c(0)}; };
  return ir_.branch(ir_.at_least(valid, 4 * index + 4), {ir_.i32}, whole,
                    [&] { return ir_.branch(ir_.at_least(valid, 4 * index + 1), {ir_.i32}, part, none); })[0];
}

Values TileFill::load_edge(Value tile, Value k_left) const {
  const Values at = addresses(tile);
  // A word more than a tile is as good as any more, and does not overflow in bytes.
  Value extent_left = ir_.sub(end(), source_.first);
  Value columns =
      ir_.min(tile_.k_contiguous ? k_left : extent_left, ir_.c(tile_.row_bytes / tile_.element + 4));
  columns = ir_.shift_left(columns, tile_.element == 2 ? 1 : 0);
  Value rows = tile_.k_contiguous ? extent_left_ : k_left;
  Values out;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    Value valid = ir_.sub(columns, ir_.sub(piece.column, piece.excess));
    // A piece beyond the end has none: not the bytes between its first word and itself either.
    valid = ir_.select(ir_.less(piece.column, columns), valid, ir_.c(0));
    if (rows) valid = ir_.select(row_less(piece, rows), valid, ir_.c(0));
    if (piece.exists) valid = ir_.select(piece.exists, valid, ir_.c(0));
    for (int64_t j = 0; j < words(); ++j) out.push_back(load_word(ir_.offset(at[i], 4 * j), valid, j));
  }
  return out;
}

Values TileFill::begin(Value stage, Value tile, Value k_left) const {
  if (!by_words_) {
    copy(stage, tile, k_left);
    return {};
  }
  const SizeValue whole = k_whole();
  const auto at_least = [&](Value x, const SizeValue& y) {
    return y.is_constant() ? ir_.at_least(x, y.constant()) : ir_.less(ir_.sub(y.value(), ir_.c(1)), x);
  };
  const llvm::SmallVector<mlir::Type> types(pieces_.size() * size_t(words()), ir_.i32);
  return ir_.branch(
      at_least(k_left, whole), types, [&] { return load_inner(tile); },
      [&] { return load_edge(tile, k_left); });
}

void TileFill::finish(Value stage, mlir::ValueRange registers) const {
  if (!by_words_) return;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    Value shift = ir_.shift_left(piece.excess, 3);
    Values shifted;
    for (size_t j = i * size_t(words()); j + 1 < (i + 1) * size_t(words()); ++j)
      shifted.push_back(funnel_shift(ir_, registers[j], registers[j + 1], shift));
    auto put = [&] { ir_.store(ir_.pack(shifted), ir_.offset(stage, piece.shared), layout_.width); };
    if (piece.exists)
      ir_.branch(piece.exists, put);
    else
      put();
  }
}

} // namespace deepgen
