#include "templates/amd/attention/mfma_attention_softmax.h"

#include <cmath>

namespace deepgen {
namespace {

/// gfx90a multiplies subnormal f16 as zeros. An exponential is at most 1, and 2^15 is an f16: so none counts
/// as zero that is 2^-29 of the greatest, or more. On other chips small ones are rounded less by it.
constexpr double kRise = 15;

} // namespace

MfmaSoftmax::MfmaSoftmax(AmdIr& builder, AttentionBlock& b, const MfmaAttentionTiling& tiling)
    : ir(builder), p(b.p), t(tiling), block(b), scores_(b), rise_(p.kv == Type::f16 ? kRise : 0) {
  Value lane = ir.wave_lane();
  group_ = ir.shift_right_bits(lane, 4);
  first_row_ = ir.add(ir.mul(ir.wave(), t.warp_rows), ir.bit_and(lane, 15));
}

AttentionBlock::Row MfmaSoftmax::nearest_row(int64_t row_tile) const {
  return block.nearest_row(in_block(row_tile));
}

Values MfmaSoftmax::start() const {
  Values out(size_t(t.row_tiles()), number(-INFINITY));
  out.append(size_t(t.row_tiles()), number(0));
  return out;
}

/// Of the four lanes of a row.
Value MfmaSoftmax::joined(Value x, Value (MfmaSoftmax::*join)(Value, Value) const) const {
  for (int64_t lanes : {16, 32}) x = (this->*join)(x, ir.shuffle_wave_xor(x, lanes));
  return x;
}

void MfmaSoftmax::add_bias(Values& scores, Value first) const {
  const auto in_row = size_t(t.keys / 4);
  AttentionScores::BiasPlaces at;
  at.rows = t.row_tiles(), at.together = 4, at.unaligned = true;
  at.row = [&](int64_t i) { return nearest_row(i); };
  at.column = ir.shift_left(group_, 2);
  for (size_t k = 0; k < in_row; ++k) at.keys.push_back(int64_t(k / 4 * 16 + k % 4));
  at.score_at = [&](int64_t i, size_t k) { return size_t(i) * in_row + k; };
  scores_.add_bias(scores, first, at);
}

void MfmaSoftmax::mask(Values& scores, Value first) const {
  const auto in_row = size_t(t.keys / 4);
  Value own = ir.add(first, ir.shift_left(group_, 2));
  for (int64_t i = 0; i < t.row_tiles(); ++i) {
    const auto [from, to] = block.bounds(nearest_row(i).token);
    Value end = ir.sub(to, own), begin = ir.sub(from, own);
    for (size_t k = 0; k < in_row; ++k) {
      const auto key = int64_t(k / 4 * 16 + k % 4);
      Value sees = ir.less(ir.c(key), end);
      if (p.mask == AttentionMask::window) sees = ir.both(sees, ir.less(begin, key + 1));
      Value& s = scores[size_t(i) * in_row + k];
      s = ir.select(sees, s, number(-INFINITY));
    }
  }
}

/// Returns the factor of the sums before.
Value MfmaSoftmax::exponentials(llvm::MutableArrayRef<Value> scores, Value& most, Value& sum) const {
  Value largest = scores[0];
  for (Value s : scores.drop_front()) largest = larger(largest, s);
  largest = larger(most, joined(largest, &MfmaSoftmax::larger));
  Value unit = scores_.unit();
  Value minus = ir.subf(number(-0.0), ir.mulf(scores_.finite(largest), unit));
  Value factor = ir.exp2_fast(ir.multiply_add(most, unit, minus));
  if (rise_ != 0) minus = ir.addf(minus, number(rise_));
  sum = ir.mulf(sum, factor), most = largest;
  for (Value& s : scores) {
    s = ir.exp2_fast(ir.multiply_add(s, unit, minus));
    sum = plus(sum, s);
  }
  return factor;
}

/// Two elements, rounded to nearest even. NaN may become any number: the row's sum is NaN then.
Value MfmaSoftmax::word(Value low, Value high) const {
  if (p.kv == Type::f16 || ir.target == "gfx950")
    return ir.bitcast(ir.i32, ir.convert(ir.memory_type(p.kv), ir.pack({low, high})));
  Values bits;
  for (Value x : {low, high}) {
    Value whole = ir.bitcast(ir.i32, x), odd = ir.bit_and(ir.shift_right_bits(whole, 16), 1);
    bits.push_back(ir.wrapping_add(ir.wrapping_add(whole, odd), ir.c(0x7fff)));
  }
  return ir.bit_or(ir.shift_right_bits(bits[0], 16), ir.bit_and(bits[1], int64_t(int32_t(0xffff0000))));
}

/// By 32 keys, of which a lane has four of the first 16 and four of the second.
Values MfmaSoftmax::packed(llvm::ArrayRef<Value> x) const {
  Values out;
  for (size_t step = 0; step < x.size(); step += 8) {
    Values words;
    for (size_t i = 0; i < 8; i += 2) words.push_back(word(x[step + i], x[step + i + 1]));
    out.push_back(ir.pack(words));
  }
  return out;
}

Values MfmaSoftmax::weights(Values scores, Value first, Values& state, Values& factors) const {
  scores_.cap(scores);
  if (p.bias) add_bias(scores, first);
  scores = block.masked(scores, first, [&](Values& x) { mask(x, first); });
  Values out;
  const auto rows = size_t(t.row_tiles()), in_row = size_t(t.keys / 4);
  for (size_t i = 0; i < rows; ++i) {
    const auto own = llvm::MutableArrayRef<Value>(scores).slice(i * in_row, in_row);
    factors.push_back(exponentials(own, state[i], state[rows + i]));
    out.append(packed(own));
  }
  return out;
}

MfmaSoftmax::Part MfmaSoftmax::part(const Values& state, int64_t row_tile) const {
  Value most = ir.mulf(state[size_t(row_tile)], scores_.unit());
  if (rise_ != 0) most = ir.subf(most, number(rise_));
  return {most, joined(state[size_t(t.row_tiles() + row_tile)], &MfmaSoftmax::plus)};
}

} // namespace deepgen
