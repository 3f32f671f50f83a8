#include "templates/gpu/simt/simt_load.h"

#include "templates/ir/nv_ir.h"

namespace deepgen {
namespace {

int64_t log2_of(int64_t x) { return x <= 1 ? 0 : 1 + log2_of(x / 2); }

} // namespace

SimtLoader::SimtLoader(GpuIr& builder, const SimtTiling& t, const SimtSide& side, Value operand, Value pitch,
                       Value first, const SizeValue& size)
    : ir(builder), t_(t), side_(side), k_units_(side.k_major ? t.bk / side.unit : t.bk),
      x_units_(side.k_major ? side.extent : side.extent / side.unit), operand_(operand), pitch_(pitch),
      size_(size), thread_(ir.thread()) {
  auto field = [&](int64_t shift, int64_t count) {
    return ir.bit_and(ir.shift_right_bits(thread_, shift), count - 1);
  };
  if (side.k_major) {
    const int64_t low = log2_of(side_.k_lanes), x = log2_of(x_units_);
    Value high = ir.shift_left(field(low + x, k_units_ / side_.k_lanes), low);
    thread_k_ = ir.add(field(0, side_.k_lanes), high), thread_x_ = field(low, x_units_);
  } else {
    thread_x_ = field(0, x_units_), thread_k_ = field(log2_of(x_units_), k_units_);
  }
  (side.k_major ? thread_k_ : thread_x_) = ir.mul(side.k_major ? thread_k_ : thread_x_, side.unit);
  x_ = from_x_ = ir.add(first, thread_x_);
  if (side.clamped()) from_x_ = ir.min(x_, ir.c(ir.sub(size, together())));
}

int64_t SimtLoader::field_of_k(int64_t piece) const {
  if (!side_.k_major) return piece / x_units_ % k_units_;
  return (piece % side_.k_lanes + piece / (side_.k_lanes * x_units_) * side_.k_lanes) % k_units_;
}
int64_t SimtLoader::field_of_x(int64_t piece) const {
  return side_.k_major ? piece / side_.k_lanes % x_units_ : piece % x_units_;
}

SimtLoader::Place SimtLoader::place(int64_t i) const {
  if (side_.k_major) { // rows in order, so that the next address is one step from the last
    int64_t rows = 1;
    while (rows < side_.per_thread && field_of_x(rows * t_.threads) != 0) ++rows;
    const int64_t pieces = side_.per_thread / rows;
    i = i % pieces * rows + i / pieces;
  }
  // The number of threads is a power of two, so that the bits of thread and of i do not mix.
  const int64_t k = field_of_k(i * t_.threads), x = field_of_x(i * t_.threads);
  return side_.k_major ? Place{k * side_.unit, x} : Place{k, x * side_.unit};
}

Value SimtLoader::start(Value k) {
  Value row = ir.to_i64(ir.add(k, ir.mul(thread_k_, t_.dot)));
  Value at = ir.offset(operand_, side_.k_major ? ir.mul(row, side_.bytes) : ir.mul(row, pitch_));
  Value x = ir.to_i64(from_x_);
  return ir.offset(at, side_.k_major ? ir.mul(x, pitch_) : ir.mul(x, side_.bytes));
}

Value SimtLoader::next(Value pointer) {
  const int64_t depth = t_.bk * t_.dot;
  return side_.k_major ? ir.offset(pointer, depth * side_.bytes) : ir.offset(pointer, ir.mul(pitch_, depth));
}

Value SimtLoader::inside(int64_t x) { return ir.less(ir.add(x_, x + together() - 1), size_); }

/// In steps of the pitch from the address before: one register pair instead of one for every row. Steps that
/// would leave the matrix along x are not taken.
Value SimtLoader::row_address(int64_t rows, Value pointer) {
  if (walk_from_ != pointer || walked_ > rows) walk_from_ = walk_ = pointer, walked_ = 0;
  if (rows != walked_) {
    Value next = ir.offset(walk_, ir.mul(pitch_, rows - walked_));
    walk_ = side_.k_major && side_.clamped() ? ir.select(inside(rows), next, walk_) : next;
  }
  walked_ = rows;
  return walk_;
}

Value SimtLoader::global_address(int64_t i, int64_t line, Value pointer) {
  const Place at = place(i);
  const int64_t k = at.k * t_.dot + (side_.k_major ? line * side_.width : line);
  if (side_.k_major) return ir.offset(row_address(at.x, pointer), k * side_.bytes);
  Value row = row_address(k, pointer);
  if (!side_.clamped() || at.x == 0) return ir.offset(row, at.x * side_.bytes);
  return ir.offset(row, ir.select(inside(at.x), ir.c(at.x * side_.bytes), ir.c(0)));
}

Value SimtLoader::shared_address(int64_t i, Value slot) {
  const Place at = place(i);
  Value thread = ir.mul(ir.add(ir.mul(thread_k_, side_.row), thread_x_), t_.element);
  Value base = ir.offset(ir.offset(ir.shared_memory(), thread), slot);
  return ir.offset(base, side_.offset + (at.k * side_.row + at.x) * t_.element);
}

Value SimtLoader::valid(int64_t i, int64_t line, Value remaining) {
  if (!t_.any_depth && t_.depth % (t_.bk * t_.dot) == 0) return ir.at_least(remaining, 1);
  int64_t k = place(i).k * t_.dot;
  if (t_.any_depth || t_.depth % t_.dot != 0) k += side_.k_major ? line * side_.width : line;
  return ir.less(ir.add(ir.mul(thread_k_, t_.dot), k), remaining);
}

void SimtLoader::copy(int64_t from, int64_t to, Value pointer, Value slot, Value remaining) {
  const int64_t bytes = side_.width * side_.bytes;
  auto all = [&] {
    for (int64_t i = from; i < to; ++i) {
      Value size = ir.select(valid(i, 0, remaining), ir.c(bytes), ir.c(0));
      static_cast<NvIr&>(ir).copy_async(shared_address(i, slot), global_address(i, 0, pointer), bytes, size);
    }
  };
  if (side_.pieces < t_.threads)
    ir.branch(ir.less(thread_, side_.pieces), all);
  else
    all();
}

Values SimtLoader::load(Value pointer, Value remaining) {
  mlir::Type type = ir.lanes(side_.width, ir.memory_type(side_.type));
  Values out;
  for (int64_t i = 0; i < side_.per_thread; ++i)
    for (int64_t line = 0; line < side_.lines; ++line) {
      Value inside = valid(i, line, remaining);
      Value address = ir.select(inside, global_address(i, line, pointer), operand_);
      out.push_back(ir.load(type, address, side_.width * side_.bytes));
    }
  return out;
}

Value SimtLoader::staged(mlir::ValueRange lines, int64_t i, Value remaining) {
  auto inside = [&](Value x, int64_t line) {
    return ir.select(valid(i, line, remaining), x, ir.zero(x.getType()));
  };
  if (t_.dot == 1) return inside(t_.as_is ? lines[0] : ir.decode(side_.type, lines[0]), 0);
  mlir::Type words = ir.lanes(side_.unit, ir.i32);
  if (side_.lines == 1) return inside(ir.bitcast(words, lines[0]), 0);
  std::vector<Values> all;
  for (int64_t line = 0; line < side_.lines; ++line)
    all.push_back(ir.unpack(inside(lines[size_t(line)], line)));
  Values along_k; // of one element of shared memory after the other
  for (int64_t x = 0; x < (side_.k_major ? 1 : side_.width); ++x)
    for (const Values& line : all)
      if (side_.k_major)
        llvm::append_range(along_k, line);
      else
        along_k.push_back(line[size_t(x)]);
  return ir.bitcast(words, ir.pack(along_k));
}

void SimtLoader::store(const Values& loaded, Value slot, Value remaining) {
  auto all = [&] {
    for (int64_t i = 0; i < side_.per_thread; ++i) {
      Value x =
          staged(mlir::ValueRange(loaded).slice(size_t(i * side_.lines), size_t(side_.lines)), i, remaining);
      Value at = shared_address(i, slot);
      if (side_.k_major) {
        for (int64_t j = 0; j < side_.unit; ++j)
          ir.store(ir.extract(x, j), ir.offset(at, j * side_.row * t_.element), t_.element);
        continue;
      }
      const int64_t together = std::min(side_.unit, 16 / t_.element);
      for (int64_t j = 0; j < side_.unit; j += together)
        ir.store(ir.slice(x, j, together), ir.offset(at, j * t_.element), together * t_.element);
    }
  };
  if (side_.pieces < t_.threads)
    ir.branch(ir.less(thread_, side_.pieces), all);
  else
    all();
}

} // namespace deepgen
