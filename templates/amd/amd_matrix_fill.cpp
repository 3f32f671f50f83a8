#include "templates/amd/amd_matrix_fill.h"

#include "templates/core/sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deepgen {

namespace arith = mlir::arith;

/// An offset that is beyond every buffer: most_offset() is below it.
constexpr int64_t kOutside = -(int64_t(1) << 31); // as an unsigned number, 2^31

MatrixFill::MatrixFill(AmdIr& builder, const MatrixTiling& t, const MatrixSide& side, Value operand,
                       Value pitch, Value first, const SizeValue& size, const SizeValue& depth, bool columns)
    : ir(builder), t_(t), side_(side), size_(size), columns_(columns), operand_(operand), pitch_(pitch),
      first_(first), thread_(ir.thread()) {
  if (t.buffer) find_buffer(depth);
  if (side.k_contiguous)
    find_whole_pieces();
  else
    find_parts_of_columns();
}

/// From the block's first row or column on. What lies beyond the matrix's last stored row is beyond its end.
void MatrixFill::find_buffer(const SizeValue& depth) {
  pitch32_ = ir.to_i32(pitch_);
  Value left = ir.sub(ir.c(size_), first_), wide = ir.to_i64(first_);
  Value along_x = side_.k_contiguous ? ir.mul(wide, pitch_) : ir.mul(wide, side_.bytes);
  Value rows = side_.k_contiguous ? ir.min(left, ir.c(side_.extent)) : ir.c(depth);
  Value last_row = side_.k_contiguous ? ir.c(ir.product(depth, side_.bytes)) : ir.mul(left, side_.bytes);
  Value bytes = ir.add(ir.mul(ir.sub(rows, ir.c(1)), pitch32_), last_row);
  buffer_ = ir.buffer(ir.offset(operand_, along_x), bytes);
}

/// Threads write LDS in order, and read from memory what belongs there: the 16 bytes of a row in another
/// order. All numbers here are powers of two, so that the bits of thread and of i do not mix. Threads beyond
/// the tile's pieces have the places of others.
void MatrixFill::find_whole_pieces() {
  const int64_t parts = 16 / side_.lds_bytes(t_); // of 16 bytes
  Value row = ir.remainder(ir.divide(thread_, side_.along_k), side_.along_x);
  Value number = ir.remainder(thread_, side_.along_k), part = ir.remainder(number, parts);
  Value whole = ir.bit_xor(ir.divide(number, parts), t_.swizzle(ir, row));
  Value x = columns_ ? t_.shape.column_of_row(ir, row, t_.paired) : row;
  for (int64_t i = 0; i < side_.per_thread; ++i) {
    const int64_t rows = i * t_.threads / side_.along_k;
    Value piece = ir.add(ir.mul(ir.bit_xor(whole, t_.swizzle(rows)), parts), part);
    add_piece(ir.add(x, columns_ ? t_.shape.column_of_row(rows, t_.paired) : rows), ir.mul(piece, side_.k));
  }
  auto place = [&](Value number, int64_t bytes) {
    return ir.offset(ir.offset(ir.shared_memory(), ir.mul(number, bytes)), side_.offset);
  };
  lds_ = place(ir.remainder(thread_, side_.pieces()), side_.lds_bytes(t_));
  if (t_.direct) wave_lds_ = place(ir.wave(), t_.shape.wave * side_.lds_bytes(t_));
}

/// The fastest along what is consecutive in memory.
void MatrixFill::find_parts_of_columns() {
  Value x = ir.mul(ir.remainder(thread_, side_.along_x), side_.x);
  Value k = ir.mul(ir.remainder(ir.divide(thread_, side_.along_x), side_.along_k), side_.k);
  for (int64_t i = 0; i < side_.per_thread; ++i) {
    const Place p = place(i);
    add_piece(ir.add(x, p.x), ir.add(k, p.k));
  }
  Value row = columns_ ? t_.shape.row_of_column(ir, x, t_.paired) : x;
  lds_k_ = ir.bit_xor(ir.mul(k, t_.shape.element), ir.mul(t_.swizzle(ir, row), 16));
  lds_ = ir.offset(ir.offset(ir.shared_memory(), ir.mul(row, t_.bk_bytes)), side_.offset);
  for (int64_t i = 0; i < side_.per_thread; ++i) // here, as writes may be within branches
    for (int64_t j = 0; j < side_.x; ++j) address(this->row(place(i).x + j), place(i).k * t_.shape.element);
}

/// Rows outside of the matrix are read from its last one, or as zeros; what comes of them is not stored.
void MatrixFill::add_piece(Value x, Value k) {
  const bool ragged = size_.may_leave(side_.extent);
  k_.push_back(k);
  if (t_.buffer) {
    Value along_x = ir.mul(x, side_.k_contiguous ? pitch32_ : ir.c(side_.bytes));
    Value along_k = ir.mul(k, side_.k_contiguous ? ir.c(side_.bytes) : pitch32_);
    Value offset = ir.add(along_x, along_k);
    // Columns beyond the end would be those of the next row.
    if (ragged && !side_.k_contiguous)
      offset = ir.select(ir.less(ir.add(first_, x), size_), offset, ir.c(kOutside));
    rows_.push_back(offset);
    return;
  }
  x = ir.add(first_, x);
  if (ragged) x = ir.min(x, ir.c(ir.sub(size_, side_.x)));
  x = ir.to_i64(x);
  Value wide = ir.to_i64(k);
  Value along_x = side_.k_contiguous ? ir.mul(x, pitch_) : ir.mul(x, side_.bytes);
  Value along_k = side_.k_contiguous ? ir.mul(wide, side_.bytes) : ir.mul(wide, pitch_);
  rows_.push_back(ir.offset(ir.offset(operand_, along_x), along_k));
}

MatrixFill::Place MatrixFill::place(int64_t i) const {
  const int64_t number = i * t_.threads;
  return {number / side_.along_x * side_.k, number % side_.along_x * side_.x};
}

Value MatrixFill::address(int64_t row, int64_t k_bytes) {
  const int64_t change = k_bytes ^ t_.swizzle(row) * 16;
  Value& shifted = shifted_[change];
  if (!shifted) shifted = ir.offset(lds_, ir.bit_xor(lds_k_, change));
  return ir.offset(shifted, row * t_.bk_bytes);
}

mlir::Type MatrixFill::raw(int64_t bytes) const {
  return bytes >= 4 ? ir.lanes(bytes / 4, ir.i32) : bytes == 2 ? ir.i16 : ir.i8;
}

Values MatrixFill::start(Value k) {
  if (t_.buffer) return {ir.mul(k, side_.k_contiguous ? ir.c(side_.bytes) : pitch32_)};
  Value bytes = side_.k_contiguous ? ir.mul(ir.to_i64(k), side_.bytes) : ir.mul(ir.to_i64(k), pitch_);
  Values out;
  for (Value row : rows_) out.push_back(ir.offset(row, bytes));
  return out;
}

Values MatrixFill::advance(const Values& place, Value steps) {
  Value k = ir.mul(steps, t_.bk);
  if (t_.buffer) return {ir.add(place[0], start(k)[0])};
  k = ir.to_i64(k);
  Value bytes = side_.k_contiguous ? ir.mul(k, side_.bytes) : ir.mul(k, pitch_);
  Values out;
  for (Value pointer : place) out.push_back(ir.offset(pointer, bytes));
  return out;
}

Value MatrixFill::load(mlir::Type type, const Values& place, int64_t i, int64_t line, int64_t bytes,
                       Value inside) {
  if (t_.buffer) {
    Value offset = bytes ? ir.add(rows_[size_t(i)], bytes) : rows_[size_t(i)];
    if (inside) offset = ir.select(inside, offset, ir.c(kOutside));
    return ir.load_buffer(type, buffer_, offset, line ? ir.add(place[0], ir.mul(pitch32_, line)) : place[0]);
  }
  Value address = ir.offset(place[size_t(i)], bytes);
  if (line) address = ir.offset(address, ir.mul(pitch_, line));
  if (!inside) return ir.load(type, address, side_.bytes);
  Value loaded = ir.load(type, ir.select(inside, address, operand_), side_.bytes);
  return ir.select(inside, loaded, ir.zero(type));
}

Value MatrixFill::load(const Values& place, int64_t i) {
  const int64_t elements = side_.k_contiguous ? side_.k : side_.x;
  return load(raw(elements * side_.bytes), place, i / lines(), i % lines(), 0, Value());
}

Values MatrixFill::load_below(const Values& place, Value limit, int64_t k_of_problem) {
  Values out;
  for (int64_t i = 0; i < side_.per_thread; ++i) {
    auto inside = [&](int64_t beyond) { return ir.less(ir.add(k_[size_t(i)], beyond), limit); };
    if (!side_.k_contiguous) {
      for (int64_t line = 0; line < side_.k; ++line)
        out.push_back(load(raw(side_.x * side_.bytes), place, i, line, 0, inside(line)));
      continue;
    }
    // In parts that lie inside or outside as a whole.
    const int64_t width = std::min(side_.k, k_of_problem & -k_of_problem);
    mlir::Type part = raw(width * side_.bytes), elements = ir.lanes(width, ir.memory_type(side_.type));
    Values all;
    for (int64_t j = 0; j < side_.k; j += width)
      llvm::append_range(
          all, ir.unpack(ir.bitcast(elements, load(part, place, i, 0, j * side_.bytes, inside(j)))));
    out.push_back(ir.bitcast(raw(side_.k * side_.bytes), ir.pack(all)));
  }
  return out;
}

/// To f16, exactly: e4m3 has fewer bits of exponent and significand than f16, e5m2 is the upper half of one.
Value MatrixFill::widened(Value x) {
  const int64_t count = mlir::isa<mlir::VectorType>(x.getType())
                            ? mlir::cast<mlir::VectorType>(x.getType()).getNumElements()
                            : 1;
  mlir::Type words = ir.lanes(count, ir.i16), halves = ir.lanes(count, ir.f16);
  auto whole = [&](int64_t value) -> Value {
    mlir::TypedAttr attribute = ir.b.getIntegerAttr(ir.i16, value);
    if (count > 1)
      attribute =
          mlir::DenseElementsAttr::get(mlir::cast<mlir::ShapedType>(words), mlir::Attribute(attribute));
    return arith::ConstantOp::create(ir.b, ir.loc, attribute);
  };
  auto shifted = [&](Value v, int64_t places) -> Value {
    return arith::ShLIOp::create(ir.b, ir.loc, v, whole(places));
  };
  Value wide = arith::ExtUIOp::create(ir.b, ir.loc, words, x);
  if (side_.type == Type::e5m2) return ir.bitcast(halves, shifted(wide, 8));
  Value magnitude = ir.bit_and(wide, whole(0x7f)), sign = shifted(ir.bit_and(wide, whole(0x80)), 8);
  Value scaled = ir.mulf(ir.bitcast(halves, shifted(magnitude, 7)),
                         ir.number(halves, 256.0)); // moves the bias of 7 to 15
  Value is_nan = arith::CmpIOp::create(ir.b, ir.loc, arith::CmpIPredicate::eq, magnitude, whole(0x7f));
  Value bits = ir.select(is_nan, whole(0x7e00), ir.bitcast(words, scaled));
  return ir.bitcast(halves, ir.bit_or(bits, sign));
}

void MatrixFill::copy(const Values& place, int64_t i, Value slot) {
  const int64_t bytes = side_.lds_bytes(t_);
  Value to = ir.offset(ir.offset(wave_lds_, slot), i * t_.threads * bytes);
  if (t_.buffer)
    ir.copy_buffer_to_shared(to, buffer_, rows_[size_t(i)], place[0], bytes);
  else
    ir.copy_to_shared(to, place[size_t(i)], bytes);
}

/// Exact for what was an 8-bit float: bf16 has f32's exponents, and more bits of significand than needed.
Value MatrixFill::as_bf16(Value halves) {
  Values all;
  for (Value v : ir.unpack(halves)) {
    Value bits = ir.bitcast(ir.i32, ir.convert(ir.f32, v)); // of which bf16 is the upper half
    all.push_back(arith::TruncIOp::create(ir.b, ir.loc, ir.i16, ir.shift_right_bits(bits, 16)));
  }
  return ir.pack(all);
}

Value MatrixFill::staged(Value elements) {
  if (size_of(side_.type) == t_.shape.element) return elements;
  return t_.shape.staged == Type::bf16 ? as_bf16(widened(elements)) : widened(elements);
}

void MatrixFill::write(const Values& loaded, int64_t i, Value slot) {
  mlir::Type element = ir.memory_type(side_.type);
  const int64_t bytes = side_.k * t_.shape.element;
  auto all = [&] {
    if (side_.k_contiguous) {
      Value x = loaded[size_t(i)];
      if (side_.bytes != t_.shape.element) x = staged(ir.bitcast(ir.lanes(side_.k, element), x));
      ir.store(x, ir.offset(ir.offset(lds_, slot), i * t_.threads * bytes), bytes);
      return;
    }
    const Place p = place(i);
    std::vector<Values> lines; // along x
    for (int64_t line = 0; line < side_.k; ++line)
      lines.push_back(
          ir.unpack(staged(ir.bitcast(ir.lanes(side_.x, element), loaded[size_t(i * side_.k + line)]))));
    for (int64_t x = 0; x < side_.x; ++x) {
      Values column;
      for (const Values& line : lines) column.push_back(line[size_t(x)]);
      ir.store(ir.pack(column), ir.offset(address(row(p.x + x), p.k * t_.shape.element), slot), bytes);
    }
  };
  if (side_.pieces() < t_.threads)
    ir.branch(ir.less(thread_, side_.pieces()), all);
  else
    all();
}

} // namespace deepgen
