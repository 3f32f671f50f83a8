#include "templates/nvidia/mma_sync/mma_sync_loop.h"

namespace deepgen {

MmaLoop::MmaLoop(NvIr& ir, const Gemm& p, const MmaTiling& t, Value memory, const Range& range,
                 Operands operands)
    : ir_(ir), p_(p), t_(t), memory_(memory), range_(range), fill_(std::move(operands.fill)),
      reader_(std::move(operands.reader)), in_flight_(fill_.size()) {}

/// So many copies at once as a tile of doubles has hold up the products that follow them: they are spread
/// over the steps of the tile before. With two stages that is the next tile, which then has the other half of
/// the steps to arrive.
int64_t MmaLoop::parts() const {
  if (!t_.shape.doubles || range_.k.may_leave(t_.bk) || through_registers(0) || through_registers(1))
    return 1;
  return std::max<int64_t>(1, t_.ring == 2 ? t_.steps / 2 : t_.steps - 1);
}

/// Elements of K from a tile of the block's on, not negative; null when tiles are whole and nobody asks for
/// more than there are.
Value MmaLoop::k_left(Value tile_index, bool always) {
  if (!always && !range_.k.may_leave(t_.bk)) return nullptr;
  Value first = ir_.mul(ir_.add(range_.first_tile, ir_.mul(tile_index, t_.splits)), t_.bk);
  return ir_.max(ir_.sub(ir_.c(range_.k), first), ir_.c(0));
}

Value MmaLoop::following(Value stage_offset) {
  Value next = ir_.add(stage_offset, t_.stage_bytes);
  return ir_.select(ir_.equal(next, ir_.c(t_.ring * t_.stage_bytes)), ir_.c(0), next);
}

Values MmaLoop::read(Value at, int64_t step) {
  Values out;
  for (size_t i = 0; i < reader_.size(); ++i)
    out.append(reader_[i].read(ir_.offset(at, tile_offset(i)), step));
  return out;
}

void MmaLoop::begin_words(Value index, mlir::ValueRange from, Value at) {
  for (size_t i = 0; i < fill_.size(); ++i)
    if (through_registers(i))
      in_flight_[i] = fill_[i].begin(ir_.offset(at, tile_offset(i)), from[i], k_left(index, true));
}

void MmaLoop::copy(Value left, mlir::ValueRange from, Value at) {
  for (size_t i = 0; i < fill_.size(); ++i)
    if (!through_registers(i)) fill_[i].begin(ir_.offset(at, tile_offset(i)), from[i], left);
}

/// Only the last tile of K may be ragged; the others do without its comparisons.
void MmaLoop::begin_copies(Value index, mlir::ValueRange from, Value at) {
  Value left = k_left(index, false);
  if (!left) return copy(nullptr, from, at);
  ir_.branch(ir_.at_least(left, t_.bk), [&] { copy(nullptr, from, at); });
  ir_.branch(ir_.less(left, t_.bk), [&] { copy(left, from, at); });
}

void MmaLoop::finish(Value at) {
  for (size_t i = 0; i < fill_.size(); ++i) fill_[i].finish(ir_.offset(at, tile_offset(i)), in_flight_[i]);
}

Values MmaLoop::next(mlir::ValueRange from) {
  Values out;
  for (size_t i = 0; i < fill_.size(); ++i) out.push_back(fill_[i].next(from[i]));
  return out;
}

/// `after_column` is called when all products with a column of B's tiles are there.
void MmaLoop::multiply_step(mlir::ValueRange fragments,
                            const std::function<void(int64_t column)>& after_column) {
  const size_t a = size_t(t_.shape.a_values), b = size_t(t_.shape.b_values);
  mlir::ValueRange of_a = fragments.take_front(a * size_t(m_tiles())),
                   of_b = fragments.drop_front(of_a.size());
  for (size_t j = 0; j < size_t(n_tiles()); ++j) {
    for (size_t i = 0; i < size_t(m_tiles()); ++i)
      multiply(ir_, t_.shape, of_a.slice(a * i, a), of_b.slice(b * j, b),
               llvm::MutableArrayRef<Value>(sums_).slice((i * size_t(n_tiles()) + j) * 4, 4));
    if (after_column) after_column(int64_t(j));
  }
}

/// The products of a step, among which the fragments of a later one are read, tile by tile: doubles leave no
/// registers for those of two whole steps.
Values MmaLoop::multiply_and_read(mlir::ValueRange fragments, Value at, int64_t step) {
  Values of_a, of_b;
  const int64_t columns = n_tiles(), each = columns / t_.weights;
  multiply_step(fragments, [&](int64_t j) {
    for (int64_t i = m_tiles() * j / columns; i < m_tiles() * (j + 1) / columns; ++i)
      of_a.append(reader_[0].read_tile(ir_.offset(at, tile_offset(0)), step, i));
    const size_t operand = size_t(1 + j / each);
    of_b.append(reader_[operand].read_tile(ir_.offset(at, tile_offset(operand)), step, j % each));
  });
  of_a.append(of_b);
  return of_a;
}

void MmaLoop::wait_for_predecessor() {
  Values tile = from_;
  const bool any_k = !range_.k.is_constant();
  for (int64_t i = 0; t_.prefetch && i < ahead() && (any_k || (i + 1) * t_.splits * t_.bk <= p_.k);
       ++i, tile = next(tile)) {
    const auto ask = [&] {
      for (size_t j = 0; j < fill_.size(); ++j) fill_[j].prefetch(tile[j]);
    };
    if (any_k)
      ir_.branch(ir_.at_least(k_left(ir_.c(i), true), t_.bk), ask);
    else
      ask();
  }
  ir_.wait_for_predecessor();
  if (t_.prefetch) ir_.launch_dependents();
}

void MmaLoop::fill_ring() {
  for (int64_t i = 0; i < ahead(); ++i) {
    auto whole = [&] {
      Value at = stage(ir_.c(i * t_.stage_bytes));
      begin_words(ir_.c(i), from_, at);
      copy(k_left(ir_.c(i), false), from_, at);
      finish(at);
    };
    if (i > 0 && (range_.split || !range_.k.is_constant()))
      ir_.branch(ir_.less(ir_.c(i), range_.tile_count), whole);
    else if (i < t_.split_tiles)
      whole();
    ir_.commit_copies();
    from_ = next(from_);
  }
  ir_.wait_copies(ahead() - 1);
  ir_.barrier();
}

void MmaLoop::start(Value coming, const Position& now) {
  begin_words(coming, now.from, stage(now.writing)); // beyond K: zeros
  if (!through_registers(0) || !through_registers(1))
    ir_.branch(ir_.less(coming, range_.tile_count),
               [&] { begin_copies(coming, now.from, stage(now.writing)); });
  ir_.commit_copies();
}

void MmaLoop::start_part(Value coming, const Position& now, int64_t part) {
  Value wanted = ir_.less(coming, range_.tile_count);
  for (size_t i = 0; i < fill_.size(); ++i)
    fill_[i].begin_part(ir_.offset(stage(now.writing), tile_offset(i)), now.from[i], wanted, size_t(part),
                        size_t(parts()));
  if (part + 1 == parts()) ir_.commit_copies();
}

/// A tile: `now` has the sums, the fragments of its first step, and the position. A stage is overwritten one
/// barrier after it was last read; one barrier a tile does for both that and the arrival of the next tile.
Values MmaLoop::body(Value index, mlir::ValueRange now) {
  Values present;
  const Position position = take_state(now, present);
  Value to_read = following(position.reading), coming = ir_.add(index, ahead());
  for (int64_t step = 0; step < t_.steps; ++step) {
    const bool last = step + 1 == t_.steps;
    if (last) {
      if (t_.steps == 1) start(coming, position);
      finish(stage(position.writing));
      ir_.wait_copies(ahead() - 1);
      ir_.barrier();
    }
    Value at = stage(last ? to_read : position.reading);
    const int64_t coming_step = last ? 0 : step + 1;
    Values later = read(at, coming_step);
    if (step == 0 && !last) start(coming, position);
    multiply_step(present);
    present = later;
  }
  return state(to_read, position, present);
}

/// The same of doubles, whose last step is multiplied in the next turn, when the first one's fragments are
/// read: the assembler moves products to the front of a barrier, and none would be left behind it to hide
/// those reads. `now` has the fragments of the tile before, and none for the first.
Values MmaLoop::turn_of_doubles(Value index, mlir::ValueRange now, bool first) {
  Values present;
  const Position position = take_state(now, present);
  Value coming = ir_.add(index, ahead());
  for (int64_t step = 0; step < t_.steps; ++step) {
    if (parts() > 1 && step < parts())
      start_part(coming, position, step);
    else if (parts() == 1 && step == 0)
      start(coming, position);
    Value at = stage(position.reading);
    present = first && step == 0 ? read(at, step) : multiply_and_read(present, at, step);
  }
  finish(stage(position.writing));
  ir_.wait_copies(ahead() - 1);
  ir_.barrier();
  return state(following(position.reading), position, present);
}

/// From what the loop carries: the sums, to their place, fragments and the position.
MmaLoop::Position MmaLoop::take_state(mlir::ValueRange now, Values& fragments) {
  const size_t rest = now.size() - fill_.size() - 2;
  fragments = Values(now.slice(sums_.size(), rest - sums_.size()));
  sums_.assign(now.begin(), now.begin() + ptrdiff_t(sums_.size()));
  return {now[rest], now[rest + 1], Values(now.drop_front(rest + 2))};
}

Values MmaLoop::state(Value reading, const Position& before, mlir::ValueRange fragments) {
  Values out = sums_;
  out.append(fragments.begin(), fragments.end());
  out.append({reading, following(before.writing)});
  out.append(next(before.from));
  return out;
}

void MmaLoop::whole_tile_at_once(Values fragments) {
  for (int64_t step = 0; step < t_.steps; ++step) {
    Values later = step + 1 < t_.steps ? read(memory_, step + 1) : Values();
    multiply_step(fragments);
    fragments = later;
  }
}

Values MmaLoop::run(Values sums) {
  sums_ = std::move(sums);
  for (const TileFill& each : fill_) from_.push_back(each.start());
  if (t_.dependent && !p_.groups) wait_for_predecessor();
  if (range_.k.is_constant()) return sum_up();
  const mlir::Type type = sums_.front().getType();
  return ir_.sums_of(range_.tile_count, sums_.size(), type, [&] { return sum_up(); });
}

Values MmaLoop::sum_up() {
  fill_ring();
  if (t_.shape.doubles && t_.ring > 1) return sum_up_doubles();
  Values fragments = read(memory_, 0);
  if (t_.ring == 1) {
    whole_tile_at_once(fragments);
    return sums_;
  }
  const size_t sum_count = sums_.size();
  Values carried = sums_;
  carried.append(fragments);
  carried.append({ir_.c(0), ir_.c(ahead() * t_.stage_bytes)});
  carried.append(from_);
  Values results = ir_.rolled_loop(ir_.c(0), range_.tile_count, 1, carried,
                                   [&](Value index, mlir::ValueRange now) { return body(index, now); });
  results.truncate(sum_count);
  return results;
}

Values MmaLoop::sum_up_doubles() {
  Values carried = sums_;
  carried.append({ir_.c(0), ir_.c(ahead() * t_.stage_bytes)});
  carried.append(from_);
  carried = turn_of_doubles(ir_.c(0), carried, true);
  carried = ir_.rolled_loop(ir_.c(1), range_.tile_count, 1, carried, [&](Value index, mlir::ValueRange now) {
    return turn_of_doubles(index, now, false);
  });
  Values last;
  take_state(carried, last);
  multiply_step(last);
  return sums_;
}

} // namespace deepgen
