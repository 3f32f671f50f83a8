#include "templates/amd_matrix_fill.h"

#include "templates/sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deepgen {

namespace arith = mlir::arith;

MatrixFill::MatrixFill(AmdIr& builder, const MatrixTiling& t, const MatrixSide& side, Value operand,
                       Value pitch, Value first, bool columns)
    : ir(builder), t_(t), side_(side), columns_(columns), operand_(operand), pitch_(pitch),
      thread_(ir.thread()) {
  if (side.k_contiguous)
    find_whole_pieces(first);
  else
    find_parts_of_columns(first);
}

/// Threads write LDS in order, and read from memory what belongs there: the pieces of a row in another order.
/// All numbers here are powers of two, so that the bits of thread and of i do not mix. Threads beyond the
/// tile's pieces have the places of others.
void MatrixFill::find_whole_pieces(Value first) {
  Value row = ir.remainder(ir.divide(thread_, side_.along_k), side_.along_x);
  Value piece = ir.bit_xor(ir.remainder(thread_, side_.along_k), t_.swizzle(ir, row));
  Value x = ir.add(first, columns_ ? t_.shape.column_of_row(ir, row, t_.paired) : row);
  for (int64_t i = 0; i < side_.per_thread; ++i) {
    const int64_t rows = i * t_.threads / side_.along_k;
    Value k = ir.mul(ir.bit_xor(piece, t_.swizzle(rows)), side_.k);
    add_piece(ir.add(x, columns_ ? t_.shape.column_of_row(rows, t_.paired) : rows), k);
  }
  lds_ = ir.offset(ir.offset(ir.shared_memory(), ir.mul(ir.remainder(thread_, side_.pieces()), 16)),
                   side_.offset);
  if (t_.direct)
    wave_lds_ = ir.offset(ir.offset(ir.shared_memory(), ir.mul(ir.wave(), t_.shape.wave * 16)), side_.offset);
}

/// The fastest along what is consecutive in memory.
void MatrixFill::find_parts_of_columns(Value first) {
  Value x = ir.mul(ir.remainder(thread_, side_.along_x), side_.x);
  Value k = ir.mul(ir.remainder(ir.divide(thread_, side_.along_x), side_.along_k), side_.k);
  for (int64_t i = 0; i < side_.per_thread; ++i) {
    const Place p = place(i);
    add_piece(ir.add(ir.add(first, x), p.x), ir.add(k, p.k));
  }
  Value row = columns_ ? t_.shape.row_of_column(ir, x, t_.paired) : x;
  lds_k_ = ir.bit_xor(ir.mul(k, t_.shape.element), ir.mul(t_.swizzle(ir, row), 16));
  lds_ = ir.offset(ir.offset(ir.shared_memory(), ir.mul(row, t_.bk_bytes)), side_.offset);
  for (int64_t i = 0; i < side_.per_thread; ++i) // here, as writes may be within branches
    for (int64_t j = 0; j < side_.x; ++j) address(this->row(place(i).x + j), place(i).k * t_.shape.element);
}

void MatrixFill::add_piece(Value x, Value k) {
  // Rows outside of the matrix are read from its last one; what comes of them is not stored.
  if (side_.size % side_.extent != 0) x = ir.min(x, ir.c(side_.size - side_.x));
  x = ir.to_i64(x);
  Value wide = ir.to_i64(k);
  Value along_x = side_.k_contiguous ? ir.mul(x, pitch_) : ir.mul(x, side_.bytes);
  Value along_k = side_.k_contiguous ? ir.mul(wide, side_.bytes) : ir.mul(wide, pitch_);
  rows_.push_back(ir.offset(ir.offset(operand_, along_x), along_k));
  k_.push_back(k);
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
  Value bytes = side_.k_contiguous ? ir.mul(ir.to_i64(k), side_.bytes) : ir.mul(ir.to_i64(k), pitch_);
  Values out;
  for (Value row : rows_) out.push_back(ir.offset(row, bytes));
  return out;
}

Values MatrixFill::advance(const Values& pointers, Value steps) {
  Value k = ir.to_i64(ir.mul(steps, t_.bk));
  Value bytes = side_.k_contiguous ? ir.mul(k, side_.bytes) : ir.mul(k, pitch_);
  Values out;
  for (Value pointer : pointers) out.push_back(ir.offset(pointer, bytes));
  return out;
}

Value MatrixFill::load(const Values& pointers, int64_t i) {
  if (side_.k_contiguous) return ir.load(raw(side_.k * side_.bytes), pointers[size_t(i)], side_.bytes);
  const int64_t line = i % side_.k;
  Value at = pointers[size_t(i / side_.k)];
  if (line) at = ir.offset(at, ir.mul(pitch_, line));
  return ir.load(raw(side_.x * side_.bytes), at, side_.bytes);
}

Values MatrixFill::load_below(const Values& pointers, Value limit, int64_t k_of_problem) {
  Values out;
  auto guarded = [&](mlir::Type type, Value address, Value k) {
    Value inside = ir.less(k, limit);
    Value loaded = ir.load(type, ir.select(inside, address, operand_), side_.bytes);
    return ir.select(inside, loaded, ir.zero(type));
  };
  for (int64_t i = 0; i < side_.per_thread; ++i) {
    Value k = k_[size_t(i)], at = pointers[size_t(i)];
    if (!side_.k_contiguous) {
      for (int64_t line = 0; line < side_.k; ++line) {
        Value address = line ? ir.offset(at, ir.mul(pitch_, line)) : at;
        out.push_back(guarded(raw(side_.x * side_.bytes), address, ir.add(k, line)));
      }
      continue;
    }
    // In parts that lie inside or outside as a whole.
    const int64_t width = std::min(side_.k, k_of_problem & -k_of_problem);
    mlir::Type element = ir.memory_type(side_.type);
    Values all;
    for (int64_t j = 0; j < side_.k; j += width)
      for (Value v :
           ir.unpack(guarded(ir.lanes(width, element), ir.offset(at, j * side_.bytes), ir.add(k, j))))
        all.push_back(v);
    out.push_back(ir.bitcast(raw(side_.k * side_.bytes), ir.pack(all)));
  }
  return out;
}

/// Exact: e4m3 has fewer bits of exponent and significand than f16, e5m2 is the upper half of one.
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

void MatrixFill::copy(const Values& pointers, int64_t i, Value slot) {
  ir.copy_to_shared(ir.offset(ir.offset(wave_lds_, slot), i * t_.threads * 16), pointers[size_t(i)]);
}

Value MatrixFill::staged(Value elements) {
  return size_of(side_.type) == t_.shape.element ? elements : widened(elements);
}

void MatrixFill::write(const Values& loaded, int64_t i, Value slot) {
  mlir::Type element = ir.memory_type(side_.type);
  const int64_t bytes = side_.k * t_.shape.element;
  auto all = [&] {
    if (side_.k_contiguous) {
      Value x = loaded[size_t(i)];
      if (side_.bytes != t_.shape.element) x = staged(ir.bitcast(ir.lanes(side_.k, element), x));
      ir.store(x, ir.offset(ir.offset(lds_, slot), i * t_.threads * 16), bytes);
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
