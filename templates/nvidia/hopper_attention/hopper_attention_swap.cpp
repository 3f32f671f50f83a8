// The consumer of swapped operands. Scores are keys times rows of Q: keys are wgmma's rows, so that few rows
// of Q waste none of its tiles, and take few registers. The second product is values times exponentials,
// which go through shared memory. Scores of the next block of keys, and the product of the present one, are
// started together, as without swap. All four warps meet twice in a step: when maxima are told, behind which
// the operands of both products are free, and when exponentials are stored.
#include "templates/nvidia/hopper_attention/hopper_attention_kernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {

/// Starts the products of a stage of keys and Q, 64 keys each.
Values HopperAttentionKernel::swapped_scores(Value stage) {
  const MatrixOperand q{q_stage(q_place), true, 0}, keys{key_stage(stage), true, 0};
  const Values none(size_t(t.rows / 2), mlir::LLVM::UndefOp::create(ir.b, ir.loc, ir.f32));
  Values out;
  for (int64_t tile = 0; tile < t.keys / kSwappedKeys; ++tile) {
    std::vector<ProductStep> steps;
    for (int64_t i = 0; i < t.depth_steps; ++i)
      steps.push_back(
          {(i / 4 * t.keys + tile * kSwappedKeys) * 128 + i % 4 * 32, i / 4 * t.rows * 128 + i % 4 * 32});
    out.append(ir.multiply_steps(t.scores, keys, q, steps, false, none));
  }
  return out;
}

/// Starts the products of a stage of values and the exponentials, 64 columns of values each.
Values HopperAttentionKernel::swapped_sums(const State& s) {
  const MatrixOperand values{value_stage(s.place.stage), false, t.keys * 128}, weights{weights_at(), true, 0};
  const auto each = size_t(t.rows / 2);
  Values out;
  for (int64_t slice = 0; slice < t.value_slices; ++slice) {
    std::vector<ProductStep> steps;
    for (int64_t i = 0; i < t.keys / 16; ++i)
      steps.push_back({(slice * t.keys + 16 * i) * 128, i / 4 * t.rows * 128 + i % 4 * 32});
    const Values before(llvm::ArrayRef<Value>(s.sums).slice(size_t(slice) * each, each));
    out.append(ir.multiply_steps(t.sums, values, weights, steps, true, before));
  }
  return out;
}

HopperAttentionKernel::State HopperAttentionKernel::swapped_begin(const OwnBlocks& blocks, RingPlace place) {
  ir.wait(key_full(place.stage), place.parity);
  Values x = ir.wait_products(0, swapped_scores(place.stage), {});
  columns->cap(x);
  mask_last(x, blocks.to);
  State out;
  out.rows = columns->start(), out.place = place;
  out.sums = Values(size_t(t.sum_registers()), ir.number(ir.f32, 0));
  const Values largest = columns->shared_maxima(columns->maxima(x));
  release(key_empty(place.stage)), release_q(ir.sub(blocks.to, ir.c(1)), blocks);
  columns->exponentials(x, largest, out.rows);
  columns->store(x);
  return out;
}

HopperAttentionKernel::State HopperAttentionKernel::swapped_step(Value block_of_keys, const KeyBlocks& blocks,
                                                                 bool masked, State s) {
  const RingPlace keys = next(s.place);
  ir.wait(key_full(keys.stage), keys.parity);
  Values x = swapped_scores(keys.stage);
  ir.wait(value_full(s.place.stage), s.place.parity);
  s.sums = swapped_sums(s);
  x = ir.wait_products(t.value_slices, x, {}); // a group for each slice of values
  columns->cap(x);
  if (masked) columns->mask(x, ir.mul(block_of_keys, t.keys));
  const Values of_warp = columns->maxima(x);
  s.sums = ir.wait_products(0, s.sums, {});
  const Values largest = columns->shared_maxima(of_warp);
  release(key_empty(keys.stage)), release_q(block_of_keys, blocks), release(value_empty(s.place.stage));
  columns->rescale(s.sums, columns->exponentials(x, largest, s.rows));
  columns->store(x);
  s.place = keys;
  return s;
}

HopperAttentionKernel::State HopperAttentionKernel::swapped_finish(State s) {
  ir.wait(value_full(s.place.stage), s.place.parity);
  s.sums = ir.wait_products(0, swapped_sums(s), {});
  columns->add_up(s.rows);
  release(value_empty(s.place.stage));
  s.place = next(s.place);
  return s;
}

/// Of each 8 rows a lane stores one, where the row exists: pairs of its columns.
void HopperAttentionKernel::store_swapped(const Values& sums, const Values& rows, bool whole) {
  for (int64_t tile = 0; tile < t.rows / 8; ++tile) {
    const AttentionColumns::Row r = columns->row_of(sums, rows, tile);
    AttentionScores::End end;
    if (whole) end = columns->end(r);
    const Type type = whole ? p.out : Type::f32;
    ir.branch(block.exists(r.row), [&] {
      Value to = whole ? block.address("out", p.out, r.row.token, r.row.head)
                       : block.record(r.row.token, r.row.head);
      if (!whole)
        ir.branch(columns->tells(), [&] { ir.store(ir.pack({r.most, r.sum}), to, 8); });
      else if (p.lse)
        ir.branch(columns->tells(),
                  [&] { ir.store(end.lse, block.address("lse", Type::f32, r.row.token, r.row.head), 4); });
      if (!whole) to = ir.offset(to, attention_record_head);
      for (int64_t i = 0; i < int64_t(r.pairs.size()); ++i) {
        Value column = columns->column(i), pair = r.pairs[size_t(i)];
        if (whole) pair = ir.mulf(pair, ir.pack({end.factor, end.factor}));
        const auto put = [&] {
          ir.store(ir.encode(type, pair), ir.offset(to, ir.mul(column, size_of(type))), 2 * size_of(type));
        };
        columns->may_be_beyond(i) ? ir.branch(ir.less(column, p.value_dim), put) : put();
      }
    });
  }
}

} // namespace deepgen
