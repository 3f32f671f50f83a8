// Of 8-bit floats, wgmma takes the second operand with K side by side alone: of values, keys. Three warps
// transpose each block of values from where TMA has brought it to where consumers read it.
//
// ldmatrix transposes elements of 16 bits, which are two columns of a key here: of 32 keys by 16 columns a
// lane gets, for keys 2c and 2c + 1 of each eight and columns 2r and 2r + 1 (c = lane % 4, r = lane / 4), a
// word of each eight. Its bytes are put together by column: a word has the keys 2c, 2c + 1, 8 + 2c and 9 + 2c
// then, which are four side by side of a row that stmatrix writes. That is the order in which a consumer's
// lanes hold their exponentials (AttentionSoftmax::narrow_fragment()), so that none of these moves. Even
// columns become rows ahead of odd ones, so that stmatrix writes to all banks (store_turned()).
#include "templates/core/sizes.h"
#include "templates/nvidia/hopper_attention/hopper_attention_kernel.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr int64_t kStepKeys = 32, kStepColumns = 16;
constexpr int64_t kAtATime = 2; ///< steps that a warp has registers for

Value joined_bytes(HopperIr& ir, Value x, Value y, bool odd) {
  return ir.assembly(ir.i32, std::string("prmt.b32 $0, $1, $2, ") + (odd ? "0x7531;" : "0x6420;"), "=r,r,r",
                     {x, y}, false);
}

} // namespace

void HopperAttentionKernel::turn_values() {
  walk(Values(2, ir.c(0)), [&](mlir::ValueRange carried) { return turn(carried); });
}

Value HopperAttentionKernel::turning_lane() const { return ir.equal(ir.lane(), ir.c(0)); }

/// The values of a block of rows, as the producer brings them.
Values HopperAttentionKernel::turn(mlir::ValueRange carried) {
  const KeyBlocks blocks = key_blocks();
  return ir.rolled_loop(blocks.from, blocks.to, 1, carried, [&](Value, mlir::ValueRange at) {
    const RingPlace place{at[0], at[1]};
    ir.wait(raw_full(place.stage), place.parity);
    ir.wait(value_empty(place.stage), ir.bit_xor(place.parity, 1));
    turn_tile(value_stage(place.stage), turned_stage(place.stage));
    ir.fence_async();
    ir.warp_barrier();
    ir.arrive_if(turning_lane(), raw_empty(place.stage));
    ir.arrive_if(turning_lane(), value_full(place.stage));
    const RingPlace after = next(place);
    return Values{after.stage, after.parity};
  });
}

/// Each warp has every third 16 columns, of all keys.
void HopperAttentionKernel::turn_tile(Value from, Value to) const {
  Value lane = ir.lane(), low = ir.bit_and(lane, 7), high = ir.shift_right_bits(lane, 4);
  Value key_row = ir.add(from, ir.shift_left(lane, 7)); // of matrix i, keys 8 i to 8 i + 7
  Value row = ir.add(low, ir.bit_and(lane, 8));         // odd columns: the second and fourth matrix
  Value turned_row = ir.add(ir.add(to, ir.shift_left(row, 7)), ir.shift_left(ir.bit_xor(high, low), 4));
  const int64_t steps = t.keys / kStepKeys;
  Value first = ir.sub(ir.warp(), ir.c(1));
  ir.rolled_loop(first, ir.c(t.columns / kStepColumns), kTurningWarps, [&](Value chunk) {
    Value slice = ir.mul(ir.shift_right_bits(chunk, 3), t.keys * 128);
    Value piece = ir.shift_left(ir.bit_xor(ir.bit_and(chunk, 7), low), 4);
    Value source = ir.add(ir.add(key_row, slice), piece);
    Value target = ir.add(turned_row, ir.mul(chunk, kStepColumns * 128));
    for (int64_t step = 0; step < steps; step += kAtATime) {
      const int64_t end = std::min(steps, step + kAtATime);
      Values words;
      for (int64_t s = step; s < end; ++s)
        words.append(ir.load_matrix(ir.pointer_to(ir.add(source, s * kStepKeys * 128)), 4, true));
      for (int64_t s = step; s < end; ++s) {
        const llvm::ArrayRef<Value> w = llvm::ArrayRef<Value>(words).slice(size_t(4 * (s - step)), 4);
        Values turned;
        for (size_t half : {0, 2})
          for (bool odd : {false, true}) turned.push_back(joined_bytes(ir, w[half], w[half + 1], odd));
        Value place = ir.add(ir.bit_xor(target, s % 4 * 32), s / 4 * t.columns * 128);
        ir.store_matrix(place, turned, false);
      }
    }
  });
}

} // namespace deepgen
