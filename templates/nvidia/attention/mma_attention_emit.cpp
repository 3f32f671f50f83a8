// The kernel of mma_attention: a block's rows of Q stay, blocks of keys and values come and go.
#include "templates/core/sizes.h"
#include "templates/gpu/attention/attention_combine.h"
#include "templates/nvidia/attention/mma_attention.h"
#include "templates/nvidia/attention/mma_attention_softmax.h"
#include "templates/nvidia/attention/mma_attention_tiles.h"

#include <algorithm>
#include <optional>

namespace deepgen {
namespace {

class MmaAttentionNest {
public:
  MmaAttentionNest(NvIr& builder, const Attention& problem, const MmaAttentionTiling& tiling,
                   const GpuIr::Arguments& args)
      : ir(builder), p(problem), t(tiling), arguments(args),
        shape(multiplied_as(p.q), multiplied_as(p.kv), builder.capability),
        block(builder, problem, tiling, args), memory(builder.shared_memory()),
        warp_row(builder.mul(builder.warp(), tiling.warp_rows)),
        key_fill(builder, tiling.key, {problem.kv, problem.head_dim}, tiling.threads, tiling.align),
        value_fill(builder, tiling.value, {problem.kv, problem.value_dim}, tiling.threads, tiling.align),
        q_reader(builder, tiling.q, warp_row, MatrixReader::rows_first, false),
        key_reader(builder, tiling.key, nullptr, MatrixReader::columns_first, false),
        value_reader(builder, tiling.value, nullptr, MatrixReader::rows_first, true) {}

  void emit() {
    ir.launch_dependents(); // that wait for this launch's end, with their own start behind them
    ir.wait_for_predecessor();
    block.enter([&] { attend(); });
  }

private:
  NvIr& ir;
  const Attention& p;
  const MmaAttentionTiling& t;
  const GpuIr::Arguments& arguments;
  const MmaShape shape;
  AttentionBlock block;
  Value memory, warp_row;
  const RowFill key_fill, value_fill;
  const MatrixReader q_reader, key_reader, value_reader;
  std::optional<AttentionSoftmax> softmax;
  Value keys_from, key_pitch, values_from, value_pitch; ///< where this thread begins to copy
  AttentionBlock::Pages key_pages, value_pages;         ///< the same, with pages
  Value end;                                            ///< of the keys that this block goes over
  Values q_fragments;                                   ///< that are held: by step, then by tile of rows

  size_t sum_count() const { return size_t(t.row_tiles() * t.column_tiles() * 4); }
  Value zero_f32() { return ir.number(ir.f32, 0); }

  void attend() {
    softmax.emplace(ir, block, warp_row);
    find_keys();
    const AttentionBlock::Bounds keys = block.seen_keys();
    Value from = keys.from;
    end = keys.to;
    fill_q();
    const int64_t groups = t.stages == 1 ? begin_single(from) : begin_ring(from);
    take_q(groups);
    Values carried(sum_count(), zero_f32());
    carried.append(softmax->start());
    const Values sums = t.stages == 1 ? single(from, carried) : ring(from, carried);
    if (t.splits == 1) return store(sums);
    ir.branch(block.is_split(), [&] { store_parts(sums); }, [&] { store(sums); });
  }

  void find_keys() {
    if (p.paged()) {
      key_pages = block.pages("key"), value_pages = block.pages("value");
      return;
    }
    key_pitch = block.pitch("key", p.kv), value_pitch = block.pitch("value", p.kv);
    keys_from = key_fill.start(block.keys_address("key"), key_pitch);
    values_from = value_fill.start(block.keys_address("value"), value_pitch);
  }

  // Q.

  void fill_q() {
    const RowFill fill(ir, t.q, {p.q, p.head_dim}, t.threads, t.align);
    fill.copy(memory, block.rows_left(), [&](Value row) {
      const AttentionBlock::Row r = block.row(row);
      return block.address("q", p.q, r.token, r.head);
    });
    ir.commit_copies();
  }

  /// Waits for Q, behind which so many groups of copies were begun.
  void take_q(int64_t groups) {
    ir.wait_copies(groups);
    ir.barrier();
    Value scale = ir.bitcast(ir.i32, arguments.at("score_scale"));
    ir.branch(ir.less(scale, 0), [&] { negate_q(); });
    if (!t.hold) return;
    for (int64_t step = 0; step < t.depth / 16; ++step) q_fragments.append(read_q(step));
  }

  /// A negative scale makes the largest score the least: so it is made positive, and Q its opposite.
  void negate_q() {
    ir.rolled_loop(ir.mul(ir.thread(), 16), ir.c(t.q.bytes()), 16 * t.threads, [&](Value at) {
      Value place = ir.offset(memory, at);
      Values words;
      for (Value word : ir.unpack(ir.load(ir.lanes(4, ir.i32), place, 16)))
        words.push_back(ir.bit_xor(word, int64_t(int32_t(0x80008000))));
      ir.store(ir.pack(words), place, 16);
    });
    ir.barrier();
  }

  Values read_q(int64_t step) {
    Values out;
    for (int64_t i = 0; i < t.row_tiles(); ++i) out.append(q_reader.read(memory, 16 * i, 32 * step));
    return out;
  }
  Values q_of(int64_t step) {
    if (!t.hold) return read_q(step);
    const auto count = size_t(4 * t.row_tiles());
    return Values(llvm::ArrayRef<Value>(q_fragments).slice(size_t(step) * count, count));
  }

  // Keys and values.

  /// Copies of the block of keys, or values, that begins with key `first`. Beyond the last key that the rows
  /// see there are zeros.
  void fill_keys(Value to, Value first) {
    if (p.paged()) return fill_from_pages(key_fill, key_pages, to, first);
    key_fill.copy(to, left(first), tile(key_fill, keys_from, first, key_pitch), key_pitch);
  }
  void fill_values(Value to, Value first) {
    if (p.paged()) return fill_from_pages(value_fill, value_pages, to, first);
    value_fill.copy(to, left(first), tile(value_fill, values_from, first, value_pitch), value_pitch);
  }
  void fill_from_pages(const RowFill& fill, const AttentionBlock::Pages& pages, Value to, Value first) {
    fill.copy_from_table(to, left(first),
                         [&](Value row) { return block.in_page(pages, ir.add(first, row)); });
  }
  Value left(Value first) { return ir.sub(block.last().to, first); }
  Value tile(const RowFill& fill, Value from, Value first, Value pitch) {
    if (fill.has_whole_passes()) return fill.advanced(from, first, pitch);
    return ir.offset(from, ir.mul(ir.to_i64(first), pitch));
  }

  /// One block of keys and one of values: each is on its way while the other one is worked on.
  int64_t begin_single(Value from) {
    if_any_keys(from, [&] { fill_keys(keys_at(), from); });
    ir.commit_copies();
    return 1;
  }
  Value keys_at() { return ir.offset(memory, t.q.bytes()); }
  Value values_at() { return ir.offset(keys_at(), t.key.bytes()); }

  Values single(Value from, const Values& start) {
    return ir.rolled_loop(from, end, t.keys, start, [&](Value first, mlir::ValueRange carried) {
      meet();
      fill_values(values_at(), first);
      ir.commit_copies();
      Values scores = scores_of(keys_at());
      meet();
      Value next = ir.add(first, t.keys);
      ir.branch(ir.less(next, end), [&] { fill_keys(keys_at(), next); });
      ir.commit_copies();
      return weigh(std::move(scores), first, values_at(), Values(carried));
    });
  }
  /// What was on its way has come, to all threads; and all are done with what they read.
  void meet() {
    ir.wait_copies(0);
    ir.barrier();
  }

  /// Without keys there is no page to copy from; of keys side by side nothing would be read.
  void if_any_keys(Value from, const std::function<void()>& fill) {
    if (!p.paged()) return fill();
    ir.branch(ir.less(from, end), fill);
  }

  /// A ring of blocks of keys and values.
  int64_t begin_ring(Value from) {
    for (int64_t i = 0; i + 1 < t.stages; ++i) {
      Value first = ir.add(from, i * t.keys);
      const auto fill = [&] { fill_stage(ir.offset(keys_at(), i * t.stage_bytes), first); };
      if (i == 0)
        if_any_keys(from, fill);
      else
        ir.branch(ir.less(first, end), fill);
      ir.commit_copies();
    }
    return t.stages - 1;
  }
  void fill_stage(Value stage, Value first) {
    fill_keys(stage, first);
    fill_values(ir.offset(stage, t.key.bytes()), first);
  }
  Value following(Value stage) {
    Value next = ir.add(stage, t.stage_bytes);
    return ir.select(ir.less(next, t.stages * t.stage_bytes), next, ir.c(0));
  }

  Values ring(Value from, Values start) {
    start.push_back(ir.c(0));                              // offset of the stage that is read
    start.push_back(ir.c((t.stages - 1) * t.stage_bytes)); // and of the one that is filled
    Values out = ir.rolled_loop(from, end, t.keys, start, [&](Value first, mlir::ValueRange carried) {
      Values state(carried);
      Value writing = state.pop_back_val(), reading = state.pop_back_val();
      ir.wait_copies(t.stages - 2);
      ir.barrier();
      Value coming = ir.add(first, (t.stages - 1) * t.keys);
      ir.branch(ir.less(coming, end), [&] { fill_stage(ir.offset(keys_at(), writing), coming); });
      ir.commit_copies();
      Value stage = ir.offset(keys_at(), reading);
      Values next = weigh(scores_of(stage), first, ir.offset(stage, t.key.bytes()), std::move(state));
      next.push_back(following(reading));
      next.push_back(following(writing));
      return next;
    });
    out.pop_back_n(2);
    return out;
  }

  // The two products.

  Values scores_of(Value keys) {
    Values s(size_t(t.row_tiles() * t.key_tiles() * 4), zero_f32());
    for (int64_t step = 0; step < t.depth / 16; ++step) {
      const Values q = q_of(step);
      for (int64_t pair = 0; pair < t.key_tiles() / 2; ++pair)
        multiply_pair(q, key_reader.read(keys, 16 * pair, 32 * step), s, t.key_tiles(), pair);
    }
    return s;
  }

  /// Two tiles of 8 columns of B, and all tiles of rows.
  void multiply_pair(llvm::ArrayRef<Value> a, llvm::ArrayRef<Value> b, Values& sums, int64_t tiles,
                     int64_t pair) {
    for (int64_t i = 0; i < t.row_tiles(); ++i)
      for (int64_t j = 0; j < 2; ++j)
        multiply(ir, shape, a.slice(size_t(4 * i), 4), b.slice(size_t(2 * j), 2),
                 llvm::MutableArrayRef<Value>(sums).slice(size_t((i * tiles + 2 * pair + j) * 4), 4));
  }

  /// Scores of the block of keys that begins with `first` become part of the sums. `carried`: sums, then the
  /// softmax's state.
  Values weigh(Values scores, Value first, Value values, Values carried) {
    softmax->cap(scores);
    softmax->add_bias(scores, first);
    scores = block.masked(scores, first, [&](Values& x) { softmax->mask(x, first); });
    Values state(llvm::ArrayRef<Value>(carried).drop_front(sum_count()));
    carried.truncate(sum_count());
    const Values factors = softmax->exponentials(scores, state);
    Values weights; // half as many registers as exponentials: so they come before what else has to be done
    for (int64_t step = 0; step < t.keys / 16; ++step)
      for (int64_t i = 0; i < t.row_tiles(); ++i) weights.append(softmax->fragment(scores, i, step));
    for (size_t i = 0; i < carried.size(); ++i) {
      const size_t row_tile = i / size_t(4 * t.column_tiles());
      carried[i] = ir.mulf(carried[i], factors[2 * row_tile + i % 4 / 2]);
    }
    const auto of_step = size_t(4 * t.row_tiles());
    for (int64_t step = 0; step < t.keys / 16; ++step)
      for (int64_t pair = 0; pair < t.column_tiles() / 2; ++pair)
        multiply_pair(llvm::ArrayRef<Value>(weights).slice(size_t(step) * of_step, of_step),
                      value_reader.read(values, 16 * step, 32 * pair), carried, t.column_tiles(), pair);
    carried.append(state);
    return carried;
  }

  // Results.

  void store(const Values& end) {
    const Values state(llvm::ArrayRef<Value>(end).drop_front(sum_count()));
    for (int64_t i = 0; i < softmax->rows(); ++i) {
      const AttentionBlock::Row row = softmax->row(i);
      const AttentionSoftmax::End e = softmax->end(state, i, row);
      ir.branch(block.exists(row), [&] { store_row(end, i, row, e); });
    }
  }

  void store_row(const Values& sums, int64_t index, const AttentionBlock::Row& row,
                 const AttentionSoftmax::End& e) {
    Value quad = ir.bit_and(ir.lane(), 3);
    Value to = block.address("out", p.out, row.token, row.head);
    to = ir.offset(to, ir.mul(quad, 2 * size_of(p.out)));
    for (int64_t tile = 0; 8 * tile < p.value_dim; ++tile) {
      const auto at = size_t((index / 2 * t.column_tiles() + tile) * 4 + index % 2 * 2);
      store_pair(ir.mulf(sums[at], e.factor), ir.mulf(sums[at + 1], e.factor), to, tile);
    }
    if (!p.lse) return;
    ir.branch(ir.equal(quad, ir.c(0)),
              [&] { ir.store(e.lse, block.address("lse", Type::f32, row.token, row.head), 4); });
  }

  /// Of the block's split, sums as they are: all that the second launch adds up.
  void store_parts(const Values& all) {
    const Values state(llvm::ArrayRef<Value>(all).drop_front(sum_count()));
    for (int64_t i = 0; i < softmax->rows(); ++i)
      softmax->store_part(
          state, i, [&](Value to, Value quad) { softmax->store_sums(all, i, t.column_tiles(), to, quad); });
  }

  void store_pair(Value x, Value y, Value row, int64_t tile) {
    const int64_t size = size_of(p.out);
    Value to = ir.offset(row, 8 * tile * size);
    if (t.align == 16) return ir.store(ir.encode(p.out, ir.pack({x, y})), to, 2 * size);
    Value first = ir.shift_left(ir.bit_and(ir.lane(), 3), 1); // column in the tile
    for (int64_t i = 0; i < 2; ++i) {
      const auto write = [&] { ir.store(ir.encode(p.out, i ? y : x), ir.offset(to, i * size), size); };
      const int64_t left = p.value_dim - 8 * tile - i;
      if (left >= 7)
        write();
      else
        ir.branch(ir.less(first, left), write);
    }
  }
};

} // namespace

Kernel MmaAttention::emit(mlir::ModuleOp module, const Attention& p, const std::string& arch,
                          const Config& config) const {
  const MmaAttentionTiling t(p, config);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = gpu_target(arch);
  kernel.args = gpu_arguments(p);
  if (t.splits > 1) kernel.args.insert(kernel.args.end(), {"workspace", "batch"});
  kernel.workspace = t.workspace(p);
  kernel.align_a = t.align;
  kernel.align_d = t.align == 16 ? 2 * size_of(p.out) : size_of(p.out);
  NvIr ir(module, kernel.target);
  GpuEntry entry;
  entry.name = kernel_symbol, entry.threads = t.threads, entry.min_blocks = t.resident;
  ir.kernel(entry, p, kernel.args,
            [&](const GpuIr::Arguments& arguments) { MmaAttentionNest(ir, p, t, arguments).emit(); });
  Launch launch = t.launch(p, t.threads);
  launch.shared = t.shared;
  launch.dependent = ir.launches_early();
  kernel.launches.push_back(launch);
  if (t.splits > 1)
    kernel.launches.push_back(combine_parts(ir, p, t, kernel.args, {t.align == 16, 32, false}));
  return kernel;
}

} // namespace deepgen
