#include "templates/gpu/gemv/gemv_warp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deepgen {
namespace {

/// A piece of a load in registers: words of 32 bits, or one of 16 or 8.
mlir::Type piece_type(GpuIr& ir, int64_t bytes) {
  return bytes >= 4 ? ir.lanes(bytes / 4, ir.i32) : bytes == 2 ? ir.i16 : ir.i8;
}

Value zero(GpuIr& ir, mlir::Type type) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(type);
  if (!vector) return ir.c(type, 0);
  return ir.pack(Values(size_t(vector.getNumElements()), ir.c(0)));
}

CachePolicy weight_cache(const GemvTiling& t) {
  return t.hint == 2 ? CachePolicy::streamed : CachePolicy::read_only;
}

} // namespace

mlir::Type gemv_accumulator(GpuIr& ir, const GemvTiling& t) {
  return t.weight_type == Type::f64 ? ir.f64 : t.weight_type == Type::i8 ? ir.i32 : ir.f32;
}

GemvWarp::GemvWarp(GpuIr& builder, const GemvTiling& tiling, const GemvOperands& operands)
    : ir(builder), t(tiling), from(operands), lane_(ir.lane()) {
  const int64_t lanes_n = t.k_major ? 1 : 32 / t.lanes_k;
  if (t.mma)
    lane_k_ = ir.mul(ir.bit_and(lane_, 3), t.lane_k);
  else
    lane_k_ = ir.mul(ir.divide(lane_, lanes_n), t.lane_k);
  find_weights();
  find_vectors();
}

int64_t GemvWarp::position(int64_t j) const {
  if (t.k_major || !t.mma) return j * t.lanes_k * t.lane_k;
  return j / t.lane_k * 4 * t.lane_k + j % t.lane_k;
}

void GemvWarp::find_weights() {
  Value k = ir.to_i64(ir.add(ir.mul(from.worker, t.k_step), lane_k_));
  for (int64_t g = 0; g < t.groups; ++g) {
    Value in_warp = ir.c(g); // fma with rows along K: every lane reads all rows
    if (t.mma)
      in_warp = ir.mul(ir.add(ir.shift_right_bits(lane_, 2), 8 * g), t.k_major ? 1 : t.elements);
    else if (!t.k_major)
      in_warp = ir.mul(ir.bit_and(lane_, 32 / t.lanes_k - 1), t.elements);
    Value row = ir.add(from.first_row, in_warp);
    // Rows past the end repeat the last ones; their sums are not used.
    if (t.rows % t.block_rows) row = ir.min(row, ir.c(t.rows - (t.k_major ? 1 : t.elements)));
    row = ir.to_i64(row);
    Value start = ir.offset(from.weights, t.k_major ? ir.mul(row, from.weight_pitch) : ir.mul(row, t.size));
    safe_weights_.push_back(start);
    weights_.push_back(ir.offset(start, t.k_major ? ir.mul(k, t.size) : ir.mul(k, from.weight_pitch)));
  }
}

void GemvWarp::find_vectors() {
  Value k = ir.to_i64(ir.add(ir.mul(from.worker, t.k_step), lane_k_));
  const int64_t count = t.mma ? t.columns / 8 : t.vectors;
  for (int64_t v = 0; v < count; ++v) {
    Value vector = ir.constant(v);
    if (t.mma) {
      vector = ir.add(ir.shift_right_bits(lane_, 2), 8 * v);
      if (t.vectors % 8) vector = ir.min(vector, ir.c(t.vectors - 1)); // columns past the end are not used
      if (from.last_vector) vector = ir.min(vector, from.last_vector);
      vector = ir.to_i64(vector);
    } else if (from.last_vector) {
      vector = ir.to_i64(ir.min(ir.c(v), from.last_vector));
    }
    const bool along = t.vectors_k_major;
    Value start = ir.offset(from.vectors, along ? ir.mul(vector, from.vector_pitch) : ir.mul(vector, t.size));
    safe_vectors_.push_back(start);
    vectors_.push_back(ir.offset(start, along ? ir.mul(k, t.size) : ir.mul(k, from.vector_pitch)));
  }
}

Value GemvWarp::guarded(mlir::Type type, Value address, Value safe, int64_t bytes, int64_t at,
                        CachePolicy cache) {
  const int64_t left = rest_ - at, farthest = (t.lanes_k - 1) * t.lane_k;
  if (!rest_of_call_) {
    if (!rest_ || farthest < left) return ir.load_global(type, address, bytes, cache);
    if (left <= 0) return zero(ir, type);
  }
  Value inside = rest_of_call_ ? ir.less(ir.add(lane_k_, at), rest_of_call_) : ir.less(lane_k_, left);
  Value piece = ir.load_global(type, ir.select(inside, address, safe), bytes, cache);
  return ir.select(inside, piece, zero(ir, type));
}

Value GemvWarp::weights_address(int64_t group, int64_t j, Value k) {
  Value address = weights_[size_t(group)];
  if (t.k_major) return ir.offset(ir.offset(address, ir.mul(k, t.size)), position(j) * t.size);
  return ir.offset(address, ir.mul(ir.add(k, position(j)), from.weight_pitch));
}

void GemvWarp::prefetch() {
  const auto ask = [&] {
    for (int64_t group = 0; group < t.groups; ++group)
      for (int64_t j = 0; j < t.positions; ++j) ir.prefetch(weights_address(group, j, ir.constant(0)));
  };
  if (t.any_k) return ir.branch(ir.less(from.worker, ir.divide(from.k.value(), t.k_step)), ask);
  if (t.k / t.k_step >= t.workers) ask(); // else some have no whole step
}

Value GemvWarp::load_weights(int64_t group, int64_t j, Value k) {
  Value address = weights_address(group, j, k);
  return guarded(piece_type(ir, t.vec), address, safe_weights_[size_t(group)], t.vec, position(j),
                 weight_cache(t));
}

Values GemvWarp::load_weights(Value k) {
  Values pieces;
  for (int64_t group = 0; group < t.groups; ++group)
    for (int64_t j = 0; j < t.positions; ++j) pieces.push_back(load_weights(group, j, k));
  return pieces;
}

Value GemvWarp::load_vector(int64_t v, int64_t at, Value k) {
  if (!t.vectors_k_major) return gather_vector(v, at, k);
  const int64_t bytes = t.vector_elements * t.size;
  Value address = ir.offset(ir.offset(vectors_[size_t(v)], ir.mul(k, t.size)), at * t.size);
  return guarded(piece_type(ir, bytes), address, safe_vectors_[size_t(v)], bytes, at, CachePolicy::read_only);
}

/// The same registers from elements that are a row apart.
Value GemvWarp::gather_vector(int64_t v, int64_t at, Value k) {
  Values words;
  for (int64_t e = 0; e < t.vector_elements; ++e) {
    Value address = ir.offset(vectors_[size_t(v)], ir.mul(ir.add(k, at + e), from.vector_pitch));
    Value x = guarded(piece_type(ir, t.size), address, safe_vectors_[size_t(v)], t.size, at + e,
                      CachePolicy::read_only);
    if (t.vector_elements == 1) return x;
    if (t.size >= 4) {
      for (Value word : ir.unpack(x)) words.push_back(word);
      continue;
    }
    const int64_t per_word = 4 / t.size, shift = e % per_word * t.size * 8;
    Value wide = ir.shift_left(mlir::arith::ExtUIOp::create(ir.b, ir.loc, ir.i32, x), shift);
    if (shift == 0)
      words.push_back(wide);
    else
      words.back() = ir.bit_or(words.back(), wide);
  }
  const int64_t bytes = t.vector_elements * t.size; // below a word: as a load of them gives
  if (bytes < 4) return mlir::arith::TruncIOp::create(ir.b, ir.loc, piece_type(ir, bytes), words[0]);
  return ir.pack(words);
}

Values GemvWarp::run() {
  const int64_t each = t.mma ? t.width * t.columns / 32 : (t.k_major ? t.groups : t.elements) * t.vectors;
  mlir::Type type = gemv_accumulator(ir, t);
  Value nothing = type == ir.i32 ? ir.c(0) : ir.number(type, 0);
  Values sums(size_t(each), nothing);
  if (t.any_k) return ragged_step_of_call(whole_steps_of_call(sums));
  if (t.k >= t.k_step) sums = whole_steps(sums);
  if (t.k % t.k_step) sums = ragged_step(sums);
  return sums;
}

/// Steps go to the workers in turn, so that neighbouring warps read neighbouring memory. `k` counts from the
/// worker's own first step.
Values GemvWarp::whole_steps(Values sums) {
  const int64_t steps = t.k / t.k_step, round = t.workers * t.k_step;
  if (steps == t.workers) return multiply(sums, load_weights(ir.constant(0)), ir.constant(0));
  Value end = ir.constant(steps / t.workers * round);
  if (steps % t.workers)
    end = ir.sub(ir.constant(steps * t.k_step), ir.to_i64(ir.mul(from.worker, t.k_step)));
  if (!t.pipeline)
    return ir.rolled_loop(ir.constant(0), end, round, sums, [&](Value k, mlir::ValueRange carried) {
      return multiply(Values(carried), load_weights(k), k);
    });
  return pipelined_steps(sums, end, round); // every worker has a step, as there are more steps than workers
}

/// `end` is at least 1.
Values GemvWarp::pipelined_steps(Values sums, Value end, int64_t round) {
  Value last = ir.mul(ir.divide(ir.sub(end, ir.constant(1)), round), round);
  Values carried = sums;
  for (Value piece : load_weights(ir.constant(0))) carried.push_back(piece);
  const auto split = [&](mlir::ValueRange all) {
    return std::pair(Values(all.take_front(sums.size())), Values(all.drop_front(sums.size())));
  };
  carried = ir.rolled_loop(ir.constant(0), last, round, carried, [&](Value k, mlir::ValueRange now) {
    auto [partial, pieces] = split(now);
    Values next = load_weights(ir.add(k, round));
    Values out = multiply(partial, pieces, k);
    out.append(next.begin(), next.end());
    return out;
  });
  auto [partial, pieces] = split(carried);
  return multiply(partial, pieces, last);
}

Values GemvWarp::whole_steps_of_call(Values sums) {
  const int64_t round = t.workers * t.k_step;
  Value steps = ir.divide(from.k.value(), t.k_step);
  Value end = ir.sub(ir.mul(ir.to_i64(steps), t.k_step), ir.to_i64(ir.mul(from.worker, t.k_step)));
  if (t.pipeline)
    return ir.branch(
        ir.at_least(end, 1), mlir::TypeRange(mlir::ValueRange(sums)),
        [&] { return pipelined_steps(sums, end, round); }, [&] { return sums; });
  return ir.rolled_loop(ir.constant(0), end, round, sums, [&](Value k, mlir::ValueRange carried) {
    return multiply(Values(carried), load_weights(k), k);
  });
}

Values GemvWarp::ragged_step_of_call(Values sums) {
  Value steps = ir.divide(from.k.value(), t.k_step), rounds = ir.divide(steps, t.workers);
  Value rest = ir.sub(from.k.value(), ir.mul(steps, t.k_step));
  Value owner = ir.sub(steps, ir.mul(rounds, t.workers));
  Value mine = ir.both(ir.equal(from.worker, owner), ir.at_least(rest, 1));
  return ir.branch(
      mine, mlir::TypeRange(mlir::ValueRange(sums)),
      [&] {
        rest_of_call_ = rest;
        Value k = ir.mul(ir.to_i64(rounds), t.workers * t.k_step);
        Values out = multiply(sums, load_weights(k), k);
        rest_of_call_ = nullptr;
        return out;
      },
      [&] { return sums; });
}

Values GemvWarp::ragged_step(Values sums) {
  const int64_t step = t.k / t.k_step, owner = step % t.workers;
  const auto body = [&] {
    rest_ = t.k % t.k_step;
    Value k = ir.constant(step / t.workers * t.workers * t.k_step);
    Values out = multiply(sums, load_weights(k), k);
    rest_ = 0;
    return out;
  };
  if (t.workers == 1) return body();
  return ir.branch(ir.equal(from.worker, ir.c(owner)), mlir::TypeRange(mlir::ValueRange(sums)), body,
                   [&] { return sums; });
}

} // namespace deepgen
