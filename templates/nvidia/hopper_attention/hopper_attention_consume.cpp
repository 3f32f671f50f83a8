// A warpgroup that multiplies. In a step, scores of a block of keys and the product of the block before are
// started together; the softmax of the scores goes on beside the second one.
#include "templates/nvidia/hopper_attention/hopper_attention_kernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {
namespace {

constexpr int64_t kTurns = 8; ///< named barriers of the consumers

} // namespace

Values HopperAttentionKernel::State::all() const {
  Values out = sums;
  out.append(weights), out.append(rows), out.append(factors);
  out.append({place.stage, place.parity});
  return out;
}

HopperAttentionKernel::State HopperAttentionKernel::state_of(mlir::ValueRange x) const {
  size_t first = 0;
  const auto next = [&](int64_t count) {
    const Values part(x.slice(first, size_t(count)));
    first += size_t(count);
    return part;
  };
  State s;
  s.sums = next(t.sum_registers());
  if (t.swap)
    s.rows = next(2 * t.swapped_rows());
  else
    s.weights = next(t.weights), s.rows = next(2 * softmax->rows());
  s.factors = next(t.early ? softmax->rows() : 0);
  s.place = {x[first], x[first + 1]};
  return s;
}

void HopperAttentionKernel::consume() {
  if (t.producer_registers) ir.registers(true, t.consumer_registers);
  consumer = ir.sub(ir.warpgroup(), ir.c(1));
  if (t.swap) {
    const AttentionColumns of_thread(ir, block, t, weights_at(), ir.add(weights_at(), t.weight_bytes),
                                     ir.c(1));
    columns = &of_thread;
    return walk_consuming();
  }
  Value warp_row = ir.add(ir.mul(consumer, 64), ir.shift_left(ir.bit_and(ir.warp(), 3), 4));
  const AttentionSoftmax of_warp(ir, block, warp_row);
  softmax = &of_warp;
  if (t.pingpong)
    ir.branch(ir.equal(consumer, ir.c(t.consumers - 1)), [&] { ir.named_barrier_arrive(kTurns, 256); });
  walk_consuming();
}

void HopperAttentionKernel::walk_consuming() {
  walk(Values(4, ir.c(0)), [&](mlir::ValueRange carried) { return attend(carried); });
}

/// A block of rows. Carried: the places in the ring of Q, and in those of keys and values.
Values HopperAttentionKernel::attend(mlir::ValueRange carried) {
  const KeyBlocks blocks = key_blocks();
  const RingPlace of_q{carried[0], carried[1]};
  q_place = of_q.stage;
  const Values none = start_rows();
  Values zeros(size_t(t.sum_registers()), ir.number(ir.f32, 0));
  zeros.append(none), zeros.append({carried[2], carried[3]});
  const Values end = ir.branch(
      ir.less(blocks.from, blocks.to), mlir::ValueRange(zeros).getTypes(),
      [&] {
        ir.wait(q_full(q_place), of_q.parity);
        Value scale = ir.bitcast(ir.i32, arguments.at("score_scale"));
        ir.branch(ir.less(scale, 0), [&] { negate_q(); });
        const OwnBlocks own = own_blocks(blocks);
        const State last = finish(steps(own, begin(own, skip(own.skipped, {carried[2], carried[3]}))));
        Values out = last.sums;
        out.append(last.rows), out.append({last.place.stage, last.place.parity});
        return out;
      },
      [&] { return zeros; });
  const auto sums = size_t(t.sum_registers());
  const llvm::ArrayRef<Value> all = end;
  store(Values(all.take_front(sums)), Values(all.slice(sums, none.size())));
  return places(after_q(of_q, blocks), {all[all.size() - 2], all.back()});
}

/// A negative scale makes the largest score the least: so it is made positive, and Q its opposite.
void HopperAttentionKernel::negate_q() {
  const int64_t part = std::min<int64_t>(64, t.rows) * 128; // bytes of a slice
  Value own = ir.add(q_stage(q_place), ir.mul(consumer, part)), thread = ir.bit_and(ir.thread(), 127);
  ir.rolled_loop(ir.shift_left(thread, 4), ir.c(t.q_slices * part), 16 * 128, [&](Value at) {
    Value slice = ir.divide(at, part);
    Value place =
        ir.pointer_to(ir.add(ir.add(own, ir.mul(slice, t.rows * 128)), ir.sub(at, ir.mul(slice, part))));
    Values words;
    for (Value word : ir.unpack(ir.load(ir.lanes(4, ir.i32), place, 16)))
      words.push_back(ir.bit_xor(word, int64_t(int32_t(t.narrow ? 0x80808080 : 0x80008000))));
    ir.store(ir.pack(words), place, 16);
  });
  ir.fence_async();
  ir.named_barrier(ir.add(consumer, 1), 128);
}

/// Starts the product of Q and a stage of keys.
Values HopperAttentionKernel::scores(Value stage) {
  std::vector<ProductStep> steps;
  for (int64_t i = 0; i < t.depth_steps; ++i)
    steps.push_back({i / 4 * t.rows * 128 + i % 4 * 32, i / 4 * t.keys * 128 + i % 4 * 32});
  const MatrixOperand q{ir.add(q_stage(q_place), ir.mul(consumer, 64 * 128)), true, 0},
      keys{key_stage(stage), true, 0};
  const Values none(size_t(t.keys / 2), mlir::LLVM::UndefOp::create(ir.b, ir.loc, ir.f32));
  return ir.multiply_steps(t.scores, q, keys, steps, false, none);
}

/// Starts the product of weights and their values, which is added to sums; or, promoted, is one of its own.
Values HopperAttentionKernel::weigh(const State& s) {
  const MatrixOperand values = t.narrow ? MatrixOperand{turned_stage(s.place.stage), true, t.columns * 128}
                                        : MatrixOperand{value_stage(s.place.stage), false, t.keys * 128};
  if (t.promoted) {
    const Values none(s.sums.size(), mlir::LLVM::UndefOp::create(ir.b, ir.loc, ir.f32));
    return ir.multiply_fragments(t.sums, s.weights, values, false, none);
  }
  const Values sums = s.factors.empty() ? s.sums : rescaled(s.sums, s.factors);
  return ir.multiply_fragments(t.sums, s.weights, values, true, sums);
}

Values HopperAttentionKernel::added(Values product, const State& s) const {
  if (!t.promoted) return product;
  for (size_t i = 0; i < product.size(); ++i)
    product[i] = ir.multiply_add(s.sums[i], s.factors[i % 4 / 2], product[i]);
  return product;
}

Values HopperAttentionKernel::rescaled(Values sums, const Values& factors) const {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = ir.mulf(sums[i], factors[i % 4 / 2]);
  return sums;
}

Values HopperAttentionKernel::weights_of(const Values& exponentials) const {
  Values out;
  for (int64_t i = 0; t.narrow && i < t.keys / 32; ++i)
    out.append(softmax->narrow_fragment(exponentials, 0, i));
  for (int64_t i = 0; !t.narrow && i < t.keys / 16; ++i) out.append(softmax->fragment(exponentials, 0, i));
  return out;
}

HopperAttentionKernel::OwnBlocks HopperAttentionKernel::own_blocks(const KeyBlocks& blocks) const {
  if (p.mask == AttentionMask::none) return {blocks, ir.c(0), nullptr, nullptr};
  AttentionBlock::Bounds first = block.first(), last = block.last();
  if (t.consumers > 1) {
    Value row = ir.mul(consumer, 64), end = ir.sub(block.rows_left(), ir.c(1)); // the last row that exists
    first = block.bounds(block.row(ir.min(row, end)).token);
    last = block.bounds(block.row(ir.min(ir.add(row, 63), end)).token);
  }
  OwnBlocks own{blocks, ir.c(0), ir.divide(first.to, t.keys), nullptr};
  if (p.mask == AttentionMask::window) own.seen = ir.divide(ir.add(last.from, t.keys - 1), t.keys);
  if (t.consumers == 1) return own;
  Value to = ir.divide(ir.add(last.to, t.keys - 1), t.keys);
  if (t.splits > 1) to = ir.min(to, blocks.to);                        // those behind are another block's
  own.skipped = ir.sub(blocks.to, ir.max(to, ir.add(blocks.from, 1))); // one is left at least
  return own;
}

/// Blocks of keys that only rows of other consumers see.
HopperAttentionKernel::RingPlace HopperAttentionKernel::skip(Value blocks, RingPlace place) {
  if (p.mask == AttentionMask::none || t.consumers == 1) return place;
  const Values out = ir.rolled_loop(
      ir.c(0), blocks, 1, {place.stage, place.parity}, [&](Value, mlir::ValueRange carried) -> Values {
        const RingPlace at{carried[0], carried[1]};
        // Not before they are there: the barriers may be in the round before. And not before all four warps
        // know, which no product holds together here: one that comes late would wait for the round after the
        // next.
        ir.wait(key_full(at.stage), at.parity), ir.wait(value_full(at.stage), at.parity);
        ir.named_barrier(ir.add(consumer, 1), 128);
        release(key_empty(at.stage)), release(value_empty(at.stage));
        take_turn(), pass_turn();
        const RingPlace after = next(at);
        return {after.stage, after.parity};
      });
  return {out[0], out[1]};
}

void HopperAttentionKernel::mask(Values& s, Value first) const {
  columns ? columns->mask(s, first) : softmax->mask(s, first);
}

/// Where all rows see all keys, only a block that is not whole needs it.
void HopperAttentionKernel::mask_last(Values& s, Value to) const {
  const auto masked = [&] {
    mask(s, ir.mul(ir.sub(to, ir.c(1)), t.keys));
    return s;
  };
  if (p.mask != AttentionMask::none) return void(masked());
  const Values whole = s;
  s = ir.branch(ir.less(block.keys(), ir.mul(to, t.keys)), mlir::ValueRange(whole).getTypes(), masked,
                [&] { return whole; });
}

/// The last block of keys, which no product goes before.
HopperAttentionKernel::State HopperAttentionKernel::begin(const OwnBlocks& blocks, RingPlace place) {
  if (t.swap) return swapped_begin(blocks, place);
  ir.wait(key_full(place.stage), place.parity);
  Values s = ir.wait_products(0, scores(place.stage), {});
  Value to = ir.sub(blocks.to, blocks.skipped), rises;
  release(key_empty(place.stage)), release_q(ir.sub(to, ir.c(1)), blocks);
  softmax->cap(s);
  softmax->add_bias(s, ir.mul(ir.sub(to, ir.c(1)), t.keys));
  mask_last(s, to);
  State out;
  out.rows = softmax->start();
  const Values factors = softmax->exponentials(s, out.rows, &rises);
  if (t.early) out.factors = factors;
  out.weights = weights_of(s);
  out.sums = Values(size_t(t.columns / 2), ir.number(ir.f32, 0));
  out.place = place;
  return out;
}

HopperAttentionKernel::State HopperAttentionKernel::step(Value block_of_keys, const KeyBlocks& blocks,
                                                         bool masked, State s) {
  if (t.swap) return swapped_step(block_of_keys, blocks, masked, std::move(s));
  const RingPlace keys = next(s.place);
  ir.wait(key_full(keys.stage), keys.parity);
  take_turn();
  Values x = scores(keys.stage);
  ir.wait(value_full(s.place.stage), s.place.parity);
  Values sums = weigh(s);
  pass_turn();
  x = ir.wait_products(1, x, {});
  release(key_empty(keys.stage)), release_q(block_of_keys, blocks);
  softmax->cap(x);
  softmax->add_bias(x, ir.mul(block_of_keys, t.keys));
  if (masked) softmax->mask(x, ir.mul(block_of_keys, t.keys));
  Value rises;
  // What is an exponential passes through the wait: as weights, they take the registers of those before.
  const auto await = [&](size_t exponentials) {
    const size_t count = sums.size();
    sums.append(x.begin(), x.begin() + int64_t(exponentials));
    sums = ir.wait_products(0, sums, s.weights);
    std::copy(sums.begin() + int64_t(count), sums.end(), x.begin());
    sums.truncate(count);
    release(value_empty(s.place.stage));
  };
  const std::function<void()> halfway = [&] { await(x.size() / 8 * 4); };
  const Values factors = softmax->exponentials(x, s.rows, &rises, t.halfway ? halfway : nullptr);
  if (!t.halfway) await(x.size());
  s.weights = weights_of(x);
  s.sums = added(sums, s);
  if (t.lazy)
    s.sums = ir.branch(
        rises, mlir::ValueRange(sums).getTypes(), [&] { return rescaled(sums, factors); },
        [&] { return sums; });
  else if (!t.early)
    s.sums = rescaled(sums, factors);
  if (t.early) s.factors = factors;
  s.place = keys;
  return s;
}

/// All blocks of keys but the last one, from there on downwards. Only those at the ends of what rows see are
/// masked.
HopperAttentionKernel::State HopperAttentionKernel::steps(const OwnBlocks& blocks, State s) {
  Value done = ir.add(blocks.skipped, 1), last = ir.sub(blocks.to, ir.c(1)),
        count = ir.sub(blocks.to, blocks.from);
  const auto go_on = [&](Value end, bool masked) {
    const Values out = ir.rolled_loop(done, end, 1, s.all(), [&](Value i, mlir::ValueRange carried) {
      return step(ir.sub(last, i), blocks, masked, state_of(carried)).all();
    });
    s = state_of(out), done = ir.max(done, end);
  };
  if (p.mask == AttentionMask::none) return go_on(count, false), s;
  go_on(ir.min(ir.sub(blocks.to, blocks.whole), count), true);
  if (p.mask != AttentionMask::window) return go_on(count, false), s;
  go_on(ir.min(ir.sub(blocks.to, blocks.seen), count), false);
  go_on(count, true);
  return s;
}

HopperAttentionKernel::State HopperAttentionKernel::finish(State s) {
  if (t.swap) return swapped_finish(std::move(s));
  ir.wait(value_full(s.place.stage), s.place.parity);
  s.sums = added(ir.wait_products(0, weigh(s), s.weights), s);
  release(value_empty(s.place.stage));
  s.place = next(s.place), s.factors.clear();
  return s;
}

/// One consumer starts its products while others compute exponentials.
void HopperAttentionKernel::take_turn() {
  if (t.pingpong) ir.named_barrier(ir.add(consumer, kTurns), 256);
}
void HopperAttentionKernel::pass_turn() {
  if (!t.pingpong) return;
  Value next = ir.add(consumer, 1);
  next = ir.select(ir.equal(next, ir.c(t.consumers)), ir.c(0), next);
  ir.named_barrier_arrive(ir.add(next, kTurns), 256);
}

/// Q, behind the scores of the last block of keys.
void HopperAttentionKernel::release_q(Value block_of_keys, const KeyBlocks& blocks) {
  ir.arrive_if(ir.both(is_first_thread(), ir.equal(block_of_keys, blocks.from)), q_empty(q_place));
}

/// One of them tells for all.
Value HopperAttentionKernel::is_first_thread() const {
  return ir.equal(ir.bit_and(ir.thread(), 127), ir.c(0));
}

} // namespace deepgen
