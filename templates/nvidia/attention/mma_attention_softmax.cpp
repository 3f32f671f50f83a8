#include "templates/nvidia/attention/mma_attention_softmax.h"

#include <cmath>
#include <vector>

namespace deepgen {
namespace {

/// 2^x on |x| <= 1/2 as a polynomial, its last coefficient first (scripts/fit_exp.py 4; largest relative
/// error 3.6e-6).
constexpr double kPower[] = {0.00978291255, 0.0559768836, 0.240207111, 0.693113604, 1};

} // namespace

AttentionSoftmax::AttentionSoftmax(NvIr& builder, AttentionBlock& b, Value warp_row)
    : ir(builder), p(b.p), t(b.t), block(b),
      row_(builder.add(warp_row, builder.shift_right_bits(builder.lane(), 2))), scores_(b),
      unit_(scores_.unit()) {}

Values AttentionSoftmax::start() const {
  Values out(size_t(rows()), number(-INFINITY));
  out.append(size_t(rows()), number(0));
  return out;
}

size_t AttentionSoftmax::place(int64_t index, int64_t key_tile, int64_t half) const {
  return size_t(((index / 2 * t.key_tiles()) + key_tile) * 4 + index % 2 * 2 + half);
}

AttentionBlock::Row AttentionSoftmax::row(Value first, int64_t index) const {
  return block.row(ir.add(first, index / 2 * 16 + index % 2 * 8));
}

void AttentionSoftmax::add_bias(Values& scores, Value first) const {
  if (!p.bias) return;
  AttentionScores::BiasPlaces at;
  at.rows = rows(), at.together = 2, at.unaligned = false;
  at.row = [&](int64_t i) { return block.nearest_row(ir.add(row_, i / 2 * 16 + i % 2 * 8)); };
  at.column = ir.shift_left(ir.bit_and(ir.lane(), 3), 1);
  for (int64_t tile = 0; tile < t.key_tiles(); ++tile)
    at.keys.insert(at.keys.end(), {8 * tile, 8 * tile + 1});
  at.score_at = [&](int64_t i, size_t k) { return place(i, int64_t(k / 2), int64_t(k % 2)); };
  scores_.add_bias(scores, first, at);
}

void AttentionSoftmax::mask(Values& scores, Value first) const {
  Value column = ir.add(first, ir.shift_left(ir.bit_and(ir.lane(), 3), 1));
  // Few blocks are masked: LLVM would find the bounds ahead of the loop, and keep them in registers.
  Value own = ir.assembly(ir.i32, "mov.b32 $0, $1;", "=r,r", row_, true);
  for (int64_t i = 0; i < rows(); ++i) {
    const auto [from, to] = block.bounds(row(own, i).token);
    Value end = ir.sub(to, column), begin = ir.sub(from, column);
    for (int64_t tile = 0; tile < t.key_tiles(); ++tile)
      for (int64_t half = 0; half < 2; ++half) {
        Value& s = scores[place(i, tile, half)];
        const int64_t key = 8 * tile + half;
        Value sees = ir.less(ir.c(key), end);
        if (p.mask == AttentionMask::window) sees = ir.both(sees, ir.less(begin, key + 1));
        s = ir.select(sees, s, number(-INFINITY));
      }
  }
}

Value AttentionSoftmax::in_quad(Value x, Value (AttentionSoftmax::*join)(Value, Value) const) const {
  for (int64_t lanes : {1, 2}) x = (this->*join)(x, ir.shuffle_xor(x, lanes));
  return x;
}

Value AttentionSoftmax::joined(llvm::MutableArrayRef<Value> parts,
                               Value (AttentionSoftmax::*join)(Value, Value) const) const {
  for (size_t step = 1; step < parts.size(); step *= 2)
    for (size_t i = 0; i + step < parts.size(); i += 2 * step)
      parts[i] = (this->*join)(parts[i], parts[i + step]);
  return parts[0];
}

/// A row's maximum in all its lanes, of which this one has seen `largest`. Returns the factor of sums.
Value AttentionSoftmax::raise(Value& most, Value largest, Value& negated) const {
  largest = larger(most, in_quad(largest, &AttentionSoftmax::larger));
  negated = minus_most(largest);
  Value factor = ir.exp2_fast(ir.multiply_add(most, unit_, negated));
  most = largest;
  return factor;
}

/// The same of all rows, where a lane of the warp has seen a score that is 2^rise times a row's maximum, as
/// exponentials; else maxima stay as they are, and all factors are 1. Of rows that have no maximum yet, any
/// score is.
Values AttentionSoftmax::raise_rarely(llvm::ArrayRef<Value> largest, Values& state, Value& rises) const {
  const auto count = size_t(rows());
  Value over;
  for (size_t i = 0; i < count; ++i) {
    Value most = ir.subf(number(-0.0), ir.mulf(state[i], unit_));
    Value own = ir.greater(ir.multiply_add(largest[i], unit_, most), t.rise);
    over = over ? ir.bit_or(over, own) : own;
  }
  rises = ir.any_lane(over);
  const llvm::SmallVector<mlir::Type> types(3 * count, ir.f32);
  const Values after = ir.branch(
      rises, types,
      [&] {
        Values all = state, factors;
        for (size_t i = 0; i < count; ++i) {
          Value negated;
          factors.push_back(raise(all[i], largest[i], negated));
          all[count + i] = ir.mulf(all[count + i], factors.back());
        }
        all.append(factors);
        return all;
      },
      [&] {
        Values all = state;
        all.append(count, number(1));
        return all;
      });
  state.assign(after.begin(), after.begin() + int64_t(2 * count));
  return Values(llvm::ArrayRef<Value>(after).drop_front(2 * count));
}

/// 2^x by the units that multiply, of x up to 127; below -127 it is 0. With r the nearest whole number: 2^(x
/// - r) by a polynomial, times 2^r, which is made of its exponent. NaN stays NaN.
Value AttentionSoftmax::soft_power(Value x) const {
  constexpr double kShift = 12582912 + 127; // 1.5 * 2^23: the lower bits of a sum with it are r + 127
  x = ir.maximum(x, number(-127));
  Value shifted = ir.addf(x, number(kShift)), rest = ir.subf(x, ir.subf(shifted, number(kShift)));
  Value power = number(kPower[0]);
  for (double c : llvm::ArrayRef<double>(kPower).drop_front())
    power = ir.multiply_add(power, rest, number(c));
  return ir.mulf(power, ir.bitcast(ir.f32, ir.shift_left(ir.bitcast(ir.i32, shifted), 23)));
}

/// The rows side by side, each in several chains, for warps that have a scheduler nearly to themselves.
Values AttentionSoftmax::in_chains(Values& scores, Values& state, Value* rises,
                                   const std::function<void()>& halfway) const {
  const auto chains = size_t(t.chains), scores_of_row = size_t(2 * t.key_tiles());
  const auto score = [&](int64_t row, size_t k) -> Value& {
    return scores[place(row, int64_t(k / 2), int64_t(k % 2))];
  };
  std::vector<Values> parts;
  for (int64_t i = 0; i < rows(); ++i) parts.emplace_back(chains);
  Values factors, negated(static_cast<size_t>(rows()));
  for (size_t k = 0; k < scores_of_row; ++k)
    for (int64_t i = 0; i < rows(); ++i) {
      Value& part = parts[size_t(i)][k % chains];
      part = k < chains ? score(i, k) : larger(part, score(i, k));
    }
  Values largest;
  for (int64_t i = 0; i < rows(); ++i) {
    largest.push_back(joined(parts[size_t(i)], &AttentionSoftmax::larger));
    if (!t.lazy) factors.push_back(raise(state[size_t(i)], largest.back(), negated[size_t(i)]));
  }
  if (t.lazy) {
    factors = raise_rarely(largest, state, *rises);
    for (size_t i = 0; i < negated.size(); ++i) negated[i] = minus_most(state[i]);
  }
  for (Value& x : negated) x = lifted(x);
  for (size_t k = 0; k < scores_of_row; ++k) {
    if (halfway && k == scores_of_row / 4 * 2) halfway();
    for (int64_t i = 0; i < rows(); ++i) {
      Value &s = score(i, k), &part = parts[size_t(i)][k % chains];
      s = ir.multiply_add(s, unit_, negated[size_t(i)]);
      s = int64_t(k) * t.soft % 8 < t.soft ? soft_power(s) : ir.exp2_fast(s);
      part = k < chains ? s : plus(part, s);
    }
  }
  for (int64_t i = 0; i < rows(); ++i) {
    Value &sum = state[size_t(rows() + i)], more = joined(parts[size_t(i)], &AttentionSoftmax::plus);
    sum = t.lazy ? plus(sum, more) : ir.multiply_add(sum, factors[size_t(i)], more);
  }
  return factors;
}

Values AttentionSoftmax::exponentials(Values& scores, Values& state, Value* rises,
                                      const std::function<void()>& halfway) const {
  if (t.chains > 1) return in_chains(scores, state, rises, halfway);
  Values factors;
  for (int64_t i = 0; i < rows(); ++i) {
    Value &most = state[size_t(i)], &sum = state[size_t(rows() + i)];
    Value largest = scores[place(i, 0, 0)];
    for (int64_t tile = 0; tile < t.key_tiles(); ++tile)
      for (int64_t half = tile == 0 ? 1 : 0; half < 2; ++half)
        largest = larger(largest, scores[place(i, tile, half)]);
    largest = larger(most, in_quad(largest, &AttentionSoftmax::larger));
    Value origin = ir.mulf(finite(largest), unit_), minus = ir.subf(number(-0.0), origin);
    factors.push_back(ir.exp2_fast(ir.multiply_add(most, unit_, minus)));
    sum = ir.mulf(sum, factors.back()), most = largest;
    for (int64_t tile = 0; tile < t.key_tiles(); ++tile)
      for (int64_t half = 0; half < 2; ++half) {
        Value& s = scores[place(i, tile, half)];
        s = ir.exp2_fast(ir.multiply_add(s, unit_, minus));
        sum = plus(sum, s);
      }
  }
  return factors;
}

Values AttentionSoftmax::fragment(const Values& exponentials, int64_t row_tile, int64_t step) const {
  const std::string type = p.kv == Type::bf16 ? "bf16x2" : "f16x2"; // e4m3 is multiplied as f16
  Values out;
  for (int64_t key_tile : {2 * step, 2 * step + 1})
    for (int64_t index : {2 * row_tile, 2 * row_tile + 1})
      out.push_back(ir.assembly(
          ir.i32, "cvt.rn." + type + ".f32 $0, $1, $2;", "=r,f,f",
          {exponentials[place(index, key_tile, 1)], exponentials[place(index, key_tile, 0)]}, false));
  return out;
}

Values AttentionSoftmax::narrow_fragment(const Values& exponentials, int64_t row_tile, int64_t step) const {
  Values out;
  for (int64_t key_tile : {4 * step, 4 * step + 2})
    for (int64_t index : {2 * row_tile, 2 * row_tile + 1}) {
      const auto at = [&](int64_t tile, int64_t half) { return exponentials[place(index, tile, half)]; };
      out.push_back(ir.assembly(
          ir.i32,
          "{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, $2, $1; "
          "cvt.rn.satfinite.e4m3x2.f32 high, $4, $3; mov.b32 $0, {low, high}; }",
          "=r,f,f,f,f", {at(key_tile, 0), at(key_tile, 1), at(key_tile + 1, 0), at(key_tile + 1, 1)}, false));
    }
  return out;
}

AttentionSoftmax::Part AttentionSoftmax::part(const Values& state, int64_t index) const {
  Value most = ir.mulf(state[size_t(index)], unit_);
  if (t.lift) most = ir.addf(most, number(-double(t.lift)));
  return {most, in_quad(state[size_t(rows() + index)], &AttentionSoftmax::plus)};
}

void AttentionSoftmax::store_part(const Values& state, int64_t index,
                                  const std::function<void(Value to, Value quad)>& store_sums) const {
  const AttentionBlock::Row of = row(index);
  const Part own = part(state, index);
  ir.branch(block.exists(of), [&] {
    Value to = block.record(of.token, of.head), quad = ir.bit_and(ir.lane(), 3);
    ir.branch(ir.equal(quad, ir.c(0)), [&] { ir.store(ir.pack({own.most, own.sum}), to, 8); });
    store_sums(to, quad);
  });
}

void AttentionSoftmax::store_sums(const Values& sums, int64_t index, int64_t tiles, Value to,
                                  Value quad) const {
  to = ir.offset(ir.offset(to, attention_record_head), ir.mul(quad, 8));
  for (int64_t tile = 0; 8 * tile < p.value_dim; ++tile) {
    const auto at = size_t((index / 2 * tiles + tile) * 4 + index % 2 * 2);
    ir.store(ir.pack({sums[at], sums[at + 1]}), ir.offset(to, 32 * tile), 8);
  }
}

AttentionSoftmax::End AttentionSoftmax::end(const Values& state, int64_t index,
                                            const AttentionBlock::Row& r) const {
  Value sum = in_quad(state[size_t(rows() + index)], &AttentionSoftmax::plus);
  Value most = ir.mulf(state[size_t(index)], unit_);
  if (t.lift) most = ir.addf(most, number(-double(t.lift)));
  return scores_.end(most, sum, r.head);
}

} // namespace deepgen
