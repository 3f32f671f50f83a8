#include "templates/nvidia/hopper_attention/hopper_attention_columns.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr int64_t kWarps = 4, kHalves = 2;

} // namespace

AttentionColumns::AttentionColumns(HopperIr& builder, const AttentionBlock& b,
                                   const HopperAttentionTiling& tiling, Value weights, Value told,
                                   Value meeting)
    : ir(builder), p(b.p), t(tiling), block(b), weights_(weights), told_(told), meeting_(meeting),
      warp_(builder.bit_and(builder.warp(), kWarps - 1)),
      key_(builder.add(builder.shift_left(warp_, 4), builder.shift_right_bits(builder.lane(), 2))),
      row_(builder.shift_left(builder.bit_and(builder.lane(), 3), 1)), scores_(b),
      larger_([this](Value x, Value y) { return ir.larger(x, y); }) {}

Values AttentionColumns::start() const {
  Values out(size_t(t.swapped_rows()), number(-INFINITY));
  out.append(size_t(t.swapped_rows()), number(0));
  return out;
}

void AttentionColumns::mask(Values& scores, Value first) const {
  Value key = ir.add(first, key_), own = ir.opaque(row_); // as AttentionSoftmax::mask()
  for (int64_t row = 0; row < t.swapped_rows(); ++row) {
    const auto [from, to] = block.bounds(block.row(ir.add(own, row / 2 * 8 + row % 2)).token);
    Value end = ir.sub(to, key), begin = ir.sub(from, key);
    for (int64_t tile = 0; tile < t.keys / kSwappedKeys; ++tile)
      for (int64_t half = 0; half < kHalves; ++half) {
        Value& s = scores[at(tile, row, half)];
        const int64_t place = kSwappedKeys * tile + 8 * half;
        Value sees = ir.less(ir.c(place), end);
        if (p.mask == AttentionMask::window) sees = ir.both(sees, ir.less(begin, place + 1));
        s = ir.select(sees, s, number(-INFINITY));
      }
  }
}

Value AttentionColumns::in_warp(Value x, const Join& join) const {
  for (int64_t lanes : {4, 8, 16}) x = join(x, ir.shuffle_xor(x, lanes));
  return x;
}

Values AttentionColumns::maxima(const Values& scores) const {
  Values out;
  for (int64_t row = 0; row < t.swapped_rows(); ++row) {
    Value most = scores[at(0, row, 0)];
    for (int64_t tile = 0; tile < t.keys / kSwappedKeys; ++tile)
      for (int64_t half = tile == 0 ? 1 : 0; half < kHalves; ++half)
        most = ir.larger(most, scores[at(tile, row, half)]);
    out.push_back(in_warp(most, larger_));
  }
  return out;
}

/// What the warps have found of each of the thread's rows, joined. What is told of maxima, and of sums, has a
/// place of its own: between two that are told in one place all warps meet once more.
Values AttentionColumns::tell(const Values& own, int64_t place, const Join& join) const {
  Value to = ir.add(told_, ir.add(ir.shift_left(row_, 2), place * kWarps * t.rows * 4));
  ir.branch(ir.less(ir.lane(), 4), [&] {
    Value of_warp = ir.add(to, ir.mul(warp_, t.rows * 4));
    for (int64_t row = 0; row < t.swapped_rows(); row += 2)
      ir.store(ir.pack({own[size_t(row)], own[size_t(row + 1)]}), ir.pointer_to(ir.add(of_warp, row * 16)),
               8);
  });
  ir.named_barrier(meeting_, 128);
  Values out;
  for (int64_t row = 0; row < t.swapped_rows(); row += 2) {
    Values of_warps[kWarps];
    for (int64_t warp = 0; warp < kWarps; ++warp) {
      Value from = ir.pointer_to(ir.add(to, warp * t.rows * 4 + row * 16));
      of_warps[warp] = ir.unpack(ir.load(ir.lanes(2, ir.f32), from, 8));
    }
    for (size_t i = 0; i < 2; ++i)
      out.push_back(join(join(of_warps[0][i], of_warps[1][i]), join(of_warps[2][i], of_warps[3][i])));
  }
  return out;
}

Values AttentionColumns::exponentials(Values& scores, const Values& largest, Values& state) const {
  Values factors;
  for (int64_t row = 0; row < t.swapped_rows(); ++row) {
    Value &most = state[size_t(row)], &sum = state[size_t(t.swapped_rows() + row)], more;
    Value now = ir.larger(most, largest[size_t(row)]);
    Value minus = ir.subf(number(-0.0), ir.mulf(scores_.finite(now), scores_.unit()));
    factors.push_back(ir.exp2_fast(ir.multiply_add(most, scores_.unit(), minus)));
    most = now;
    for (int64_t tile = 0; tile < t.keys / kSwappedKeys; ++tile)
      for (int64_t half = 0; half < kHalves; ++half) {
        Value& s = scores[at(tile, row, half)];
        s = ir.exp2_fast(ir.multiply_add(s, scores_.unit(), minus));
        more = more ? ir.addf(more, s) : s;
      }
    sum = ir.multiply_add(sum, factors.back(), more);
  }
  return factors;
}

/// A tile of 8 keys by 8 rows of Q is a matrix of stmatrix, which transposes it. Lanes 8 i to 8 i + 7 say
/// where the rows of matrix i are: its keys are a half of the warp's 16, and 16 bytes of the row.
void AttentionColumns::store(const Values& exponentials) const {
  const std::string type = p.kv == Type::bf16 ? "bf16x2" : "f16x2";
  Value lane = ir.lane(), low = ir.bit_and(lane, 7), half = ir.bit_and(ir.shift_right_bits(lane, 3), 1);
  Value piece = ir.bit_xor(ir.add(ir.shift_left(warp_, 1), half), low);
  Value row = ir.add(low, ir.shift_left(ir.shift_right_bits(lane, 4), 3));
  Value to = ir.add(weights_, ir.add(ir.shift_left(row, 7), ir.shift_left(piece, 4)));
  for (int64_t tile = 0; tile < t.keys / kSwappedKeys; ++tile)
    for (int64_t first = 0; first < t.rows / 8; first += 2) {
      Values words;
      for (int64_t eight = first; eight < std::min(first + 2, t.rows / 8); ++eight)
        for (int64_t h = 0; h < kHalves; ++h)
          words.push_back(ir.assembly(
              ir.i32, "cvt.rn." + type + ".f32 $0, $1, $2;", "=r,f,f",
              {exponentials[at(tile, 2 * eight + 1, h)], exponentials[at(tile, 2 * eight, h)]}, false));
      ir.store_matrix(ir.add(to, (tile * t.rows + 8 * first) * 128), words, true);
    }
  ir.fence_async();
  ir.named_barrier(meeting_, 128);
}

void AttentionColumns::add_up(Values& state) const {
  const Join plus = [&](Value x, Value y) { return ir.addf(x, y); };
  const auto count = size_t(t.swapped_rows());
  Values own;
  for (size_t row = 0; row < count; ++row) own.push_back(in_warp(state[count + row], plus));
  const Values all = tell(own, 1, plus);
  std::copy(all.begin(), all.end(), state.begin() + int64_t(count));
}

void AttentionColumns::rescale(Values& sums, const Values& factors) const {
  for (int64_t slice = 0; slice < t.value_slices; ++slice)
    for (int64_t row = 0; row < t.swapped_rows(); ++row)
      for (int64_t half = 0; half < kHalves; ++half) {
        Value& sum = sums[at(slice, row, half)];
        sum = ir.mulf(sum, factors[size_t(row)]);
      }
}

/// Lanes 4 apart have neighbouring columns of the same two rows: the first one gets both columns of the first
/// row, the other one those of the second.
AttentionColumns::Row AttentionColumns::row_of(const Values& sums, const Values& state, int64_t tile) const {
  Value second = ir.not_equal(ir.bit_and(ir.lane(), 4), ir.c(0));
  const auto own = [&](size_t first) { return ir.select(second, state[first + 1], state[first]); };
  Row out;
  out.row = block.row(ir.add(ir.add(row_, 8 * tile), ir.select(second, ir.c(1), ir.c(0))));
  out.most = ir.mulf(own(size_t(2 * tile)), scores_.unit());
  out.sum = own(size_t(t.swapped_rows() + 2 * tile));
  for (int64_t slice = 0; slice < t.value_slices; ++slice)
    for (int64_t half = 0; half < kHalves; ++half) {
      Value x = sums[at(slice, 2 * tile, half)], y = sums[at(slice, 2 * tile + 1, half)];
      Value got = ir.shuffle_xor(ir.select(second, x, y), 4);
      out.pairs.push_back(ir.pack({ir.select(second, got, x), ir.select(second, y, got)}));
    }
  return out;
}

Value AttentionColumns::column(int64_t pair) const {
  Value of_lane = ir.bit_and(ir.shift_right_bits(ir.lane(), 2), 6);
  return ir.add(ir.add(ir.shift_left(warp_, 4), of_lane), pair / 2 * 64 + pair % 2 * 8);
}

Value AttentionColumns::tells() const { return ir.both(ir.less(warp_, 1), ir.less(ir.lane(), 8)); }

} // namespace deepgen
