// How sums leave: from registers, 16 bytes of a row at a time where elements have 16 bits.
#include "templates/nvidia/hopper_attention/hopper_attention_kernel.h"

namespace deepgen {
namespace {

constexpr int64_t kQuad = 4; ///< lanes that have a row, and 8 columns of a tile

/// Of a square of words, of which each lane of a quad has a row, the lane's column.
void transpose_in_quad(HopperIr& ir, llvm::MutableArrayRef<Value> words) {
  for (int64_t step : {1, 2}) {
    Value upper = ir.not_equal(ir.bit_and(ir.lane(), step), ir.c(0));
    for (int64_t i = 0; i < kQuad; ++i) {
      if (i & step) continue;
      Value &low = words[size_t(i)], &high = words[size_t(i | step)];
      Value got = ir.shuffle_xor(ir.select(upper, low, high), step);
      low = ir.select(upper, got, low), high = ir.select(upper, high, got);
    }
  }
}

} // namespace

void HopperAttentionKernel::store(const Values& sums, const Values& rows) {
  if (t.splits == 1) return store_whole(sums, rows);
  ir.branch(block.is_split(), [&] { store_parts(sums, rows); }, [&] { store_whole(sums, rows); });
}

/// Of the block's split, sums as they are: all that the second launch adds up.
void HopperAttentionKernel::store_parts(const Values& sums, const Values& rows) {
  if (t.swap) return store_swapped(sums, rows, false);
  for (int64_t i = 0; i < softmax->rows(); ++i)
    softmax->store_part(rows, i, [&](Value to, Value quad) {
      if (t.narrow)
        store_turned(sums, i, nullptr, Type::f32, ir.offset(to, attention_record_head));
      else
        softmax->store_sums(sums, i, t.columns / 8, to, quad);
    });
}

void HopperAttentionKernel::store_whole(const Values& sums, const Values& rows) {
  if (t.swap) return store_swapped(sums, rows, true);
  for (int64_t i = 0; i < softmax->rows(); ++i) {
    const AttentionBlock::Row row = softmax->row(i);
    const AttentionSoftmax::End e = softmax->end(rows, i, row);
    store_row(sums, i, e, row);
  }
}

/// Tiles of 8 columns in fours, where elements have 16 bits: a lane of the quad gets all of one tile.
Values HopperAttentionKernel::gathered_row(const Values& sums, int64_t index, Value factor) {
  Values all;
  if (size_of(p.out) != 2) return all;
  for (int64_t tile = 0; tile + kQuad <= p.value_dim / 8; tile += kQuad) {
    Values words;
    for (int64_t i = 0; i < kQuad; ++i) {
      const auto at = size_t((tile + i) * 4 + index * 2);
      Value pair = ir.pack({ir.mulf(sums[at], factor), ir.mulf(sums[at + 1], factor)});
      words.push_back(ir.bitcast(ir.i32, ir.encode(p.out, pair)));
    }
    transpose_in_quad(ir, words);
    all.push_back(ir.pack(words));
  }
  return all;
}

void HopperAttentionKernel::store_row(const Values& sums, int64_t index, const AttentionSoftmax::End& e,
                                      const AttentionBlock::Row& row) {
  const int64_t size = size_of(p.out);
  if (t.narrow)
    return ir.branch(block.exists(row), [&] {
      store_turned(sums, index, e.factor, p.out, block.address("out", p.out, row.token, row.head));
      store_lse(ir.bit_and(ir.lane(), 3), e, row);
    });
  const Values pieces = gathered_row(sums, index, e.factor); // by all lanes, whether their rows exist or not
  ir.branch(block.exists(row), [&] {
    Value quad = ir.bit_and(ir.lane(), 3), to = block.address("out", p.out, row.token, row.head);
    Value own = ir.offset(to, ir.shift_left(quad, 4));
    for (size_t i = 0; i < pieces.size(); ++i) ir.store(pieces[i], ir.offset(own, int64_t(i) * 64), 16);
    own = ir.offset(to, ir.mul(quad, 2 * size));
    for (int64_t tile = kQuad * int64_t(pieces.size()); tile < p.value_dim / 8; ++tile) {
      const auto at = size_t(tile * 4 + index * 2);
      Value pair = ir.pack({ir.mulf(sums[at], e.factor), ir.mulf(sums[at + 1], e.factor)});
      ir.store(ir.encode(p.out, pair), ir.offset(own, 8 * tile * size), 2 * size);
    }
    store_lse(quad, e, row);
  });
}

void HopperAttentionKernel::store_lse(Value quad, const AttentionSoftmax::End& e,
                                      const AttentionBlock::Row& row) {
  if (!p.lse) return;
  ir.branch(ir.equal(quad, ir.c(0)),
            [&] { ir.store(e.lse, block.address("lse", Type::f32, row.token, row.head), 4); });
}

/// Of 16 columns, which turn_tile() has put into another order, a lane has four side by side: the first and
/// third of these in the first tile of 8. Without a factor, sums are stored as they are.
void HopperAttentionKernel::store_turned(const Values& sums, int64_t index, Value factor, Type type,
                                         Value to) {
  const int64_t size = size_of(type);
  to = ir.offset(to, ir.mul(ir.bit_and(ir.lane(), 3), kQuad * size));
  for (int64_t step = 0; step < p.value_dim / 16; ++step) {
    Values four;
    for (int64_t column = 0; column < kQuad; ++column) {
      const int64_t tile = 2 * step + column % 2;
      Value sum = sums[size_t(tile * 4 + index * 2 + column / 2)];
      four.push_back(factor ? ir.mulf(sum, factor) : sum);
    }
    ir.store(ir.encode(type, ir.pack(four)), ir.offset(to, 16 * step * size), kQuad * size);
  }
}

} // namespace deepgen
