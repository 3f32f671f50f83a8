// The loop over K in which every wave reads the next step's fragments while it multiplies. A tile's way to
// LDS: through registers, where tile t + 1 waits while t is multiplied and t + 2 is loaded, or with three
// stages t + 2 and t + 3, so that a load has a whole tile's time; or directly, up to t + stages at a time.
#include "templates/amd/amd_matrix_block.h"
#include "templates/core/sizes.h"

namespace deepgen {

Values MatrixBlock::State::pack() const {
  Values all = {slot};
  for (const Values* values : {&later, &a, &b, &loaded_a, &loaded_b, &rows, &columns, &sums})
    llvm::append_range(all, *values);
  return all;
}

MatrixBlock::State MatrixBlock::State::unpacked(const Values& all) const {
  State s = *this;
  const Value* next = all.data();
  s.slot = *next++;
  for (Values* values : {&s.later, &s.a, &s.b, &s.loaded_a, &s.loaded_b, &s.rows, &s.columns, &s.sums})
    for (Value& value : *values) value = *next++;
  return s;
}

void MatrixBlock::flush(Queue& queue) {
  for (; !queue.empty(); queue.pop_front()) queue.front()();
}

Value MatrixBlock::next_slot(const State& s) {
  if (t.stages == 1) return s.slot;
  return t.stages == 2 ? ir.sub(ir.c(t.stage_bytes()), s.slot) : s.later[0];
}

Value MatrixBlock::previous_slot(const State& s) { return t.stages <= 2 ? next_slot(s) : s.later[1]; }

/// Three stages take turns by their offsets: to find the next one each time would stand ahead of all reads.
void MatrixBlock::next_stage(const State& s, State& after) {
  after.slot = next_slot(s);
  if (t.stages == 3) after.later = {s.later[1], s.slot};
}

/// The fragments of one step, in pieces of 16 bytes a lane; they replace those in `into` as they are emitted.
void MatrixBlock::read_step(State& into, Value slot, int64_t step, Queue& queue) {
  mlir::Type type = ir.lanes(4, ir.i32);
  const int64_t pieces = t.shape.pieces();
  auto read = [&](Values& fragments, const Values& lane, int64_t count) {
    fragments.assign(size_t(count * pieces), Value());
    Values bases;
    for (int64_t i = 0; i < pieces; ++i) bases.push_back(ir.offset(lane[size_t(step * pieces + i)], slot));
    for (int64_t i = 0; i < count * pieces; ++i) {
      Value* place = &fragments[size_t(i)];
      Value base = bases[size_t(i % pieces)];
      const int64_t at = i / pieces * t.size * t.bk_bytes;
      queue.push_back([this, place, base, at, type] {
        Value from = ir.offset(base, at);
        *place = t.direct ? ir.load_copied(type, from, 16) : ir.load(type, from, 16);
      });
    }
  };
  read(into.columns, lds_b_, column_tiles());
  read(into.rows, lds_a_, row_tiles());
}

void MatrixBlock::write_tile(const State& s, Value slot, Queue& queue) {
  auto of = [&](MatrixFill& fill, const Values& loaded) {
    for (int64_t i = 0; i < fill.writes(); ++i)
      queue.push_back([&fill, loaded, i, slot] { fill.write(loaded, i, slot); });
  };
  of(*a_, s.loaded_a), of(*b_, s.loaded_b);
}

void MatrixBlock::load_tile(State& s, Queue& queue) {
  auto of = [&](MatrixFill& fill, const Values& pointers, Values& loaded) {
    loaded.assign(size_t(fill.loads()), Value());
    for (int64_t i = 0; i < fill.loads(); ++i) {
      Value* place = &loaded[size_t(i)];
      queue.push_back([&fill, pointers, place, i] { *place = fill.load(pointers, i); });
    }
  };
  of(*a_, s.a, s.loaded_a), of(*b_, s.b, s.loaded_b);
}

/// A register that has been written is loaded at once.
void MatrixBlock::write_and_load_tile(const State& s, Value slot, State& after, Queue& queue) {
  auto of = [&](MatrixFill& fill, const Values& loaded, const Values& place, Values& next) {
    next.assign(size_t(fill.loads()), Value());
    for (int64_t i = 0; i < fill.writes(); ++i) {
      queue.push_back([&fill, loaded, i, slot] { fill.write(loaded, i, slot); });
      for (int64_t j = i * fill.lines(); j < (i + 1) * fill.lines(); ++j) {
        Value* to = &next[size_t(j)];
        queue.push_back([&fill, place, to, j] { *to = fill.load(place, j); });
      }
    }
  };
  of(*a_, s.loaded_a, after.a, after.loaded_a), of(*b_, s.loaded_b, after.b, after.loaded_b);
}

void MatrixBlock::copy_tile(const State& s, Value slot, Queue& queue) {
  auto of = [&](MatrixFill& fill, const Values& pointers) {
    for (int64_t i = 0; i < fill.writes(); ++i)
      queue.push_back([&fill, pointers, i, slot] { fill.copy(pointers, i, slot); });
  };
  of(*a_, s.a), of(*b_, s.b);
}

void MatrixBlock::move_on(State& s, Value wanted) {
  Value steps = ir.select(wanted, ir.c(1), ir.c(0)); // else the last tile is fetched again
  s.a = a_->advance(s.a, steps), s.b = b_->advance(s.b, steps);
}

void MatrixBlock::barrier(int64_t copies_left) {
  if (t.direct)
    ir.barrier_beside_copies(copies_left);
  else
    ir.barrier();
}

void MatrixBlock::multiply(const Values& rows, const Values& columns, Values& sums, Queue& between) {
  const int64_t all = t.shape.instructions() * row_tiles() * column_tiles(), pieces = t.shape.pieces();
  const int64_t total = int64_t(between.size());
  int64_t done = 0;
  for (int64_t part = 0; part < t.shape.instructions(); ++part)
    for (int64_t i = 0; i < row_tiles(); ++i)
      for (int64_t j = 0; j < column_tiles(); ++j) {
        Value& sum = sums[size_t(i * column_tiles() + j)];
        sum = t.shape.multiply(ir, &columns[size_t(j * pieces)], &rows[size_t(i * pieces)], sum, part);
        // Spread over the first three quarters, so that what is read is there when the next step begins.
        const int64_t due = std::min(total, (++done * total * 4 + all * 3 - 1) / (all * 3));
        while (total - int64_t(between.size()) < due) between.front()(), between.pop_front();
      }
  flush(between);
}

/// Makes the tile behind this one visible in LDS, and reads its first fragments.
void MatrixBlock::wait_for_tile(State& s, Queue& queue) {
  // LLVM would wait for the last fragments as soon as they are asked for, and multiply behind the barrier. On
  // gfx950 a step's products take too few cycles to hide them.
  if (t.steps > 1 && t.shape.wave == 64 && t.shape.instructions() > 1) ir.fence_schedule();
  barrier((t.stages - 2) * t.loads()); // those of later tiles
  read_step(s, s.slot, 0, queue);
}

/// If K ends within a tile, that tile is the first one: only there elements are guarded.
void MatrixBlock::first_tile_to_shared(State& s, Value depth, bool ragged) {
  Queue queue;
  if (ragged) {
    const int64_t unit = unit_of(p, Size::k);
    Value limit = ir.select(ir.equal(first_tile_, ir.c(0)), depth, ir.c(t.bk));
    s.loaded_a = a_->load_below(s.a, limit, unit), s.loaded_b = b_->load_below(s.b, limit, unit);
  } else if (t.direct) {
    copy_tile(s, s.slot, queue);
  } else {
    load_tile(s, queue);
  }
  flush(queue);
  if (ragged || !t.direct) write_tile(s, s.slot, queue);
  flush(queue);
  if (t.direct) s.loaded_a.clear(), s.loaded_b.clear();
}

/// Of a call's K, which may be less than a tile: then nobody uses what is loaded.
void MatrixBlock::load_below_end(State& s) {
  Value limit = ir.min(ir.c(sizes_.k), ir.c(t.bk));
  s.loaded_a = a_->load_below(s.a, limit, 1), s.loaded_b = b_->load_below(s.b, limit, 1);
}

/// Tile 0 in LDS. Behind it, what is on its way when a loop begins: with direct copies as many tiles as there
/// are other stages (one less where waves take turns, as the others may still read), else the next one.
MatrixBlock::State MatrixBlock::first_state() {
  const SizeValue missing = any_k_ ? SizeValue(ir.sub(ir.c(t.bk), depth_.value())) : t.bk - depth_.constant();
  State s;
  Value first = ir.max(ir.sub(ir.mul(first_tile_, t.bk), ir.c(missing)), ir.c(0));
  s.a = a_->start(first), s.b = b_->start(first), s.slot = ir.c(0);
  if (t.stages == 3) s.later = {ir.c(t.stage_bytes()), ir.c(2 * t.stage_bytes())};
  first_tile_to_shared(s, ir.c(depth_), depth_.may_leave(t.bk));
  Queue queue;
  auto go_to = [&](int64_t number) {
    Value k;
    if (any_k_)
      k = ir.add(ir.add(ir.mul(first_tile_, t.bk), depth_.value()), (number - 1) * t.bk);
    else
      k = ir.add(ir.mul(first_tile_, t.bk), depth_.constant() + (number - 1) * t.bk);
    k = ir.min(k, ir.c(ir.sub(sizes_.k, t.bk)));
    if (any_k_) k = ir.max(k, ir.c(0));
    s.a = a_->start(k), s.b = b_->start(k);
  };
  if (t.direct) {
    const int64_t behind = t.stages - (t.pingpong ? 2 : 1);
    for (int64_t i = 1; i <= behind; ++i)
      go_to(i), copy_tile(s, ir.c(i * t.stage_bytes()), queue), flush(queue);
    go_to(behind + 1);
    barrier(behind * t.loads());
  } else {
    for (int64_t i = 1; i <= t.ahead() && (any_k_ || i < t.tiles_k); ++i) {
      if (i > 1) write_tile(s, ir.c((i - 1) * t.stage_bytes()), queue), flush(queue);
      go_to(i);
      if (any_k_)
        load_below_end(s);
      else
        load_tile(s, queue), flush(queue);
    }
    ir.barrier();
  }
  if (!t.pingpong) read_step(s, s.slot, 0, queue);
  flush(queue);
  s.sums.assign(size_t(row_tiles() * column_tiles()), ir.zero(t.shape.sum_type(ir)));
  return s;
}

/// `left`: tiles behind this one. The last step's multiplication hides the reads of the next tile's first
/// fragments.
MatrixBlock::State MatrixBlock::tile(State s, Value left) {
  State after = s;
  next_stage(s, after);
  if (!t.direct) move_on(after, ir.at_least(left, t.ahead() + 1));
  // Of three stages nobody reads the one that is written: the copies are spread over the whole tile.
  Queue queue, whole_tile;
  const bool spread = !t.direct && t.stages == 3;
  if (spread) write_and_load_tile(s, previous_slot(s), after, whole_tile);
  for (int64_t step = 0; step < t.steps; ++step) {
    const Values rows = s.rows, columns = s.columns;
    const bool last = step + 1 == t.steps;
    if (!last) read_step(s, s.slot, step + 1, queue);
    if (last && t.stages == 1) ir.barrier();
    if (!t.direct && !spread && (t.stages == 1 ? last : step == 0)) write_tile(s, after.slot, queue);
    if (last) {
      flush(queue);
      wait_for_tile(after, queue);
      if (t.direct)
        copy_tile(s, s.slot, queue); // all have read what is there
      else if (!spread)
        load_tile(after, queue);
    }
    for (int64_t share = ceil_div(int64_t(whole_tile.size()), t.steps - step); share > 0; --share)
      queue.push_back(whole_tile.front()), whole_tile.pop_front();
    multiply(rows, columns, s.sums, queue);
  }
  // Else the first fragments, which are read here and ahead of the loop, would be read when it begins.
  ir.keep_order();
  if (t.direct) move_on(after, ir.at_least(left, t.stages + 1));
  after.sums = s.sums;
  return after;
}

void MatrixBlock::last_tile(State& s) {
  Queue queue;
  for (int64_t step = 0; step < t.steps; ++step) {
    const Values rows = s.rows, columns = s.columns;
    if (step + 1 < t.steps) read_step(s, s.slot, step + 1, queue);
    multiply(rows, columns, s.sums, queue);
  }
}

} // namespace deepgen
