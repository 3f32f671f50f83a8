#include "templates/simt_load.h"

namespace deepgen {
namespace {

int64_t log2_of(int64_t x) { return x <= 1 ? 0 : 1 + log2_of(x / 2); }

} // namespace

SimtLoader::SimtLoader(GpuIr& builder, const SimtTiling& t, const SimtSide& side, Value operand, Value pitch, Value first)
    : ir(builder), t_(t), side_(side), k_units_(side.k_major ? t.bk / side.width : t.bk),
      x_units_(side.k_major ? side.extent : side.extent / side.width),
      // Eight lanes along k read whole sectors of a row; with the padding of 16 bytes they write different banks.
      k_lanes_(side.k_major ? std::min<int64_t>(8, k_units_) : 1), operand_(operand), pitch_(pitch), first_(first),
      thread_(ir.thread()) {
  auto field = [&](int64_t shift, int64_t count) {
    return ir.bit_and(ir.shift_right_bits(thread_, shift), count - 1);
  };
  if (side.k_major) {
    const int64_t low = log2_of(k_lanes_), x = log2_of(x_units_);
    Value high = ir.shift_left(field(low + x, k_units_ / k_lanes_), low);
    thread_k_ = ir.add(field(0, k_lanes_), high), thread_x_ = field(low, x_units_);
  } else {
    thread_x_ = field(0, x_units_), thread_k_ = field(log2_of(x_units_), k_units_);
  }
  (side.k_major ? thread_k_ : thread_x_) = ir.mul(side.k_major ? thread_k_ : thread_x_, side.width);
  if (!clamped()) return;
  // Rows outside of the matrix are read from its last one; what comes of them is not stored.
  for (int64_t i = 0; i < side.per_thread; ++i) {
    Value x = ir.add(ir.add(first_, thread_x_), place(i).x);
    x = ir.to_i64(ir.min(x, ir.c(side.size - (side.k_major ? 1 : side.width))));
    rows_.push_back(side.k_major ? ir.mul(x, pitch_) : ir.mul(x, side.bytes));
  }
}

int64_t SimtLoader::field_of_k(int64_t access) const {
  if (!side_.k_major) return access / x_units_ % k_units_;
  return (access % k_lanes_ + access / (k_lanes_ * x_units_) * k_lanes_) % k_units_;
}
int64_t SimtLoader::field_of_x(int64_t access) const {
  return side_.k_major ? access / k_lanes_ % x_units_ : access % x_units_;
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
  return side_.k_major ? Place{k * side_.width, x} : Place{k, x * side_.width};
}

Value SimtLoader::start(Value k) {
  Value row = ir.to_i64(ir.add(k, thread_k_));
  Value at = ir.offset(operand_, side_.k_major ? ir.mul(row, side_.bytes) : ir.mul(row, pitch_));
  if (clamped()) return at;
  Value x = ir.to_i64(ir.add(first_, thread_x_));
  return ir.offset(at, side_.k_major ? ir.mul(x, pitch_) : ir.mul(x, side_.bytes));
}

Value SimtLoader::next(Value pointer) {
  return side_.k_major ? ir.offset(pointer, t_.bk * side_.bytes) : ir.offset(pointer, ir.mul(pitch_, t_.bk));
}

/// In steps of the pitch from the address before: one register pair instead of one for every row.
Value SimtLoader::row_address(int64_t rows, Value pointer) {
  if (walk_from_ != pointer || walked_ > rows) walk_from_ = walk_ = pointer, walked_ = 0;
  if (rows != walked_) walk_ = ir.offset(walk_, ir.mul(pitch_, rows - walked_));
  walked_ = rows;
  return walk_;
}

Value SimtLoader::global_address(int64_t i, Value pointer) {
  const Place at = place(i);
  if (clamped()) pointer = ir.offset(pointer, rows_[size_t(i)]);
  if (side_.k_major) {
    if (!clamped()) pointer = row_address(at.x, pointer);
    return ir.offset(pointer, at.k * side_.bytes);
  }
  if (clamped()) return at.k ? ir.offset(pointer, ir.mul(pitch_, at.k)) : pointer;
  return ir.offset(row_address(at.k, pointer), at.x * side_.bytes);
}

Value SimtLoader::shared_address(int64_t i, Value slot) {
  const Place at = place(i);
  Value thread = ir.mul(ir.add(ir.mul(thread_k_, side_.row), thread_x_), t_.element);
  Value base = ir.offset(ir.offset(ir.shared_memory(), thread), slot);
  return ir.offset(base, side_.offset + (at.k * side_.row + at.x) * t_.element);
}

Value SimtLoader::valid(int64_t i, Value remaining) {
  if (t_.k % t_.bk == 0) return ir.at_least(remaining, 1);
  return ir.less(ir.add(thread_k_, place(i).k), remaining);
}

void SimtLoader::copy(int64_t from, int64_t to, Value pointer, Value slot, Value remaining) {
  const int64_t bytes = side_.width * side_.bytes;
  auto all = [&] {
    for (int64_t i = from; i < to; ++i) {
      Value size = ir.select(valid(i, remaining), ir.c(bytes), ir.c(0));
      ir.copy_async(shared_address(i, slot), global_address(i, pointer), bytes, size);
    }
  };
  if (side_.accesses < t_.threads)
    ir.branch(ir.less(thread_, side_.accesses), all);
  else
    all();
}

Values SimtLoader::load(Value pointer, Value remaining) {
  mlir::Type type = ir.lanes(side_.width, t_.dot ? ir.i32 : ir.memory_type(side_.type));
  Values out;
  for (int64_t i = 0; i < side_.per_thread; ++i) {
    Value inside = valid(i, remaining);
    Value address = ir.select(inside, global_address(i, pointer), operand_);
    out.push_back(ir.load(type, address, side_.width * side_.bytes));
  }
  return out;
}

void SimtLoader::store(const Values& loaded, Value slot, Value remaining) {
  auto all = [&] {
    for (int64_t i = 0; i < side_.per_thread; ++i) {
      Value x = t_.as_is ? loaded[size_t(i)] : ir.decode(side_.type, loaded[size_t(i)]);
      x = ir.select(valid(i, remaining), x, ir.zero(x.getType()));
      Value at = shared_address(i, slot);
      if (side_.k_major) {
        for (int64_t j = 0; j < side_.width; ++j)
          ir.store(ir.extract(x, j), ir.offset(at, j * side_.row * t_.element), t_.element);
        continue;
      }
      const int64_t piece = std::min(side_.width, 16 / t_.element);
      for (int64_t j = 0; j < side_.width; j += piece)
        ir.store(ir.slice(x, j, piece), ir.offset(at, j * t_.element), piece * t_.element);
    }
  };
  if (side_.accesses < t_.threads)
    ir.branch(ir.less(thread_, side_.accesses), all);
  else
    all();
}

} // namespace deepgen
