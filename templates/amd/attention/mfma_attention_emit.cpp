// The kernel of mfma_attention: a block's rows of Q stay, blocks of keys and values come and go. While one is
// multiplied, the next is on its way into registers.
#include "templates/amd/attention/mfma_attention_softmax.h"
#include "templates/core/sizes.h"
#include "templates/gpu/attention/attention_combine.h"

#include <optional>

namespace deepgen {
namespace {

class MfmaAttentionNest {
public:
  MfmaAttentionNest(AmdIr& builder, const Attention& problem, const MfmaAttentionTiling& tiling,
                    const GpuIr::Arguments& args)
      : ir(builder), p(problem), t(tiling), arguments(args), block(builder, problem, tiling, args),
        memory(builder.shared_memory()), key_copy(builder, tiling.key, problem.head_dim, tiling.threads),
        value_copy(builder, tiling.value, problem.value_dim, tiling.threads), key_reader(builder, tiling.key),
        value_reader(builder, tiling.value) {}

  void emit() {
    block.enter([&] { attend(); });
  }

private:
  AmdIr& ir;
  const Attention& p;
  const MfmaAttentionTiling& t;
  const GpuIr::Arguments& arguments;
  AttentionBlock block;
  Value memory;
  const RowCopy key_copy;
  const ColumnCopy value_copy;
  const LdsReader key_reader, value_reader;
  std::optional<MfmaSoftmax> softmax;
  Values q; ///< what the wave multiplies of Q: by tile of rows, then by step
  AttentionBlock::Pages key_pages, value_pages;
  Value keys_from, key_pitch, values_from, value_pitch; ///< the same without pages
  mlir::Type sum_type;

  size_t sum_count() const { return size_t(t.row_tiles() * t.column_tiles()); }

  void attend() {
    softmax.emplace(ir, block, t);
    sum_type = t.shape.sum_type(ir);
    const AttentionBlock::Bounds keys = block.seen_keys();
    Values start(sum_count(), ir.zero(sum_type));
    start.append(softmax->start());
    llvm::SmallVector<mlir::Type> types;
    for (Value x : start) types.push_back(x.getType());
    const Values all = ir.branch(
        ir.less(keys.from, keys.to), types,
        [&] {
          take_q();
          find_keys();
          return t.stages == 1 ? single(keys, start) : ring(keys, start);
        },
        [&] { return start; });
    if (t.splits == 1) return store(all);
    ir.branch(block.is_split(), [&] { store_parts(all); }, [&] { store(all); });
  }

  /// A negative scale makes the largest score the least: so it is made positive, and Q its opposite.
  void take_q() {
    Value scale = ir.bitcast(ir.i32, arguments.at("score_scale"));
    Value sign = ir.select(ir.less(scale, 0), ir.c(int64_t(int32_t(0x80008000))), ir.c(0));
    Value column = ir.mul(softmax->group(), 8);
    for (int64_t i = 0; i < t.row_tiles(); ++i) {
      const AttentionBlock::Row r = softmax->nearest_row(i);
      Value row = block.address("q", p.q, r.token, r.head);
      for (int64_t step = 0; step < t.steps(); ++step) {
        Values words;
        for (Value word : ir.unpack(RowCopy::piece(ir, row, ir.add(column, 32 * step), p.head_dim, t.depth)))
          words.push_back(ir.bit_xor(word, sign));
        q.push_back(ir.pack(words));
      }
    }
  }

  // Keys and values.

  void find_keys() {
    if (p.paged()) {
      key_pages = block.pages("key"), value_pages = block.pages("value");
      return;
    }
    key_pitch = block.pitch("key", p.kv), value_pitch = block.pitch("value", p.kv);
    keys_from = block.keys_address("key"), values_from = block.keys_address("value");
  }

  /// Of the block of keys that begins with `first`, what this thread copies: of keys, then of values. Behind
  /// the last key that the rows see, that one is read again; of values zeros take its place.
  Values load(Value first) {
    const auto is_valid = [&](Value row) { return ir.less(ir.add(first, row), block.last().to); };
    const auto in = [&](const AttentionBlock::Pages& pages) {
      return [&, first](Value row) { return block.in_page(pages, ir.add(first, row)); };
    };
    const auto from = [&](Value base, Value pitch) {
      return ir.offset(base, ir.mul(ir.to_i64(first), pitch));
    };
    const auto nearest = [&](Value base, Value pitch) {
      return [&, base, pitch](Value row) {
        Value token = ir.min(ir.add(first, row), ir.sub(block.last().to, ir.c(1)));
        return ir.offset(base, ir.mul(ir.to_i64(token), pitch));
      };
    };
    // Whole blocks apart: their values are not waited for until they are written.
    llvm::SmallVector<mlir::Type> types(size_t(key_copy.passes()), ir.lanes(4, ir.i32));
    types.append(size_t(value_copy.loads()), value_copy.loaded_type());
    return ir.branch(
        ir.less(block.last().to, ir.add(first, t.keys)), types,
        [&] {
          if (p.paged()) return load({{}, {}, in(key_pages), {}}, {{}, {}, in(value_pages), is_valid});
          return load({{}, {}, nearest(keys_from, key_pitch), {}},
                      {{}, {}, nearest(values_from, value_pitch), is_valid});
        },
        [&] {
          if (p.paged()) return load({{}, {}, in(key_pages), {}}, {{}, {}, in(value_pages), {}});
          return load({from(keys_from, key_pitch), key_pitch, {}, {}},
                      {from(values_from, value_pitch), value_pitch, {}, {}});
        });
  }
  Values load(const SourceRows& keys, const SourceRows& values) {
    Values out = key_copy.load(keys);
    out.append(value_copy.load(values));
    return out;
  }

  void write(Value stage, mlir::ValueRange loaded) {
    key_copy.write(stage, loaded.take_front(size_t(key_copy.passes())));
    value_copy.write(values_at(stage), loaded.drop_front(size_t(key_copy.passes())));
  }
  Value values_at(Value stage) { return ir.offset(stage, t.key.bytes()); }

  // Barriers end a turn and do not begin it: at the head of a loop LLVM 22 takes away the wait for LDS that a
  // barrier has, where nothing is under way as the loop begins.

  /// One block in LDS: the next one waits in registers until all are done with it.
  Values single(const AttentionBlock::Bounds& keys, const Values& start) {
    Values carried = start;
    const size_t own = start.size();
    carried.append(load(keys.from));
    Values out = ir.rolled_loop(keys.from, keys.to, t.keys, carried, [&](Value first, mlir::ValueRange x) {
      write(memory, x.drop_front(own));
      ir.barrier();
      const Values next = load(ir.add(first, t.keys));
      Values after = weigh(memory, first, Values(x.take_front(own)));
      ir.barrier();
      after.append(next);
      return after;
    });
    out.truncate(own);
    return out;
  }

  /// Two in LDS: the next one is written to the other's place.
  Values ring(const AttentionBlock::Bounds& keys, Values carried) {
    write(memory, load(keys.from));
    ir.barrier();
    carried.push_back(ir.c(0)); // the stage that is read
    Values out = ir.rolled_loop(keys.from, keys.to, t.keys, carried, [&](Value first, mlir::ValueRange x) {
      Value reading = x.back(), writing = ir.sub(ir.c(t.stage_bytes), reading);
      const Values next = load(ir.add(first, t.keys));
      Values after = weigh(ir.offset(memory, reading), first, Values(x.drop_back()));
      write(ir.offset(memory, writing), next);
      ir.barrier();
      after.push_back(writing);
      return after;
    });
    out.pop_back();
    return out;
  }

  // The two products.

  /// sums[i] += tile * operands[i], of a step of both.
  void multiply(Value tile, llvm::ArrayRef<Value> operands, int64_t apart, Value* sums, int64_t sums_apart) {
    for (int64_t part = 0; part < t.shape.instructions(); ++part)
      for (int64_t i = 0; i < t.row_tiles(); ++i) {
        Value& sum = sums[i * sums_apart];
        sum = t.shape.multiply(ir, &tile, &operands[size_t(i * apart)], sum, part);
      }
  }

  Values scores_of(Value keys) {
    Values tiles(size_t(t.row_tiles() * t.key_rows()), ir.zero(sum_type));
    for (int64_t step = 0; step < t.steps(); ++step)
      for (int64_t i = 0; i < t.key_rows(); ++i)
        multiply(key_reader.read(keys, i, step), llvm::ArrayRef<Value>(q).drop_front(size_t(step)), t.steps(),
                 &tiles[size_t(i)], t.key_rows());
    Values out;
    for (Value tile : tiles) out.append(ir.unpack(tile));
    return out;
  }

  /// The block of keys that begins with `first` becomes part of the sums. `carried`: sums, then the softmax's
  /// state.
  Values weigh(Value stage, Value first, Values carried) {
    Values state(llvm::ArrayRef<Value>(carried).drop_front(sum_count())), factors;
    carried.truncate(sum_count());
    const Values weights = softmax->weights(scores_of(stage), first, state, factors);
    for (size_t i = 0; i < carried.size(); ++i) {
      Value factor = factors[i / size_t(t.column_tiles())];
      carried[i] = ir.mulf(carried[i], ir.pack({factor, factor, factor, factor}));
    }
    for (int64_t step = 0; step < t.key_steps(); ++step)
      for (int64_t i = 0; i < t.column_tiles(); ++i)
        multiply(value_reader.read(values_at(stage), i, step),
                 llvm::ArrayRef<Value>(weights).drop_front(size_t(step)), t.key_steps(), &carried[size_t(i)],
                 t.column_tiles());
    carried.append(state);
    return carried;
  }

  // Results. A lane has four columns of each 16, of one row of each tile.

  void store(const Values& all) {
    const Values state(llvm::ArrayRef<Value>(all).drop_front(sum_count()));
    for (int64_t i = 0; i < t.row_tiles(); ++i) {
      const AttentionBlock::Row row = softmax->row(i);
      const MfmaSoftmax::Part part = softmax->part(state, i);
      ir.branch(block.exists(row), [&] {
        const AttentionScores::End e = softmax->end(part, row.head);
        Value to = block.address("out", p.out, row.token, row.head);
        for (int64_t tile = 0; tile < t.column_tiles(); ++tile)
          store_columns(all[size_t(i * t.column_tiles() + tile)], e.factor, to, tile);
        if (!p.lse) return;
        ir.branch(ir.equal(softmax->group(), ir.c(0)),
                  [&] { ir.store(e.lse, block.address("lse", Type::f32, row.token, row.head), 4); });
      });
    }
  }

  void store_columns(Value sums, Value factor, Value row, int64_t tile) {
    const int64_t size = size_of(p.out), left = p.value_dim - 16 * tile;
    Value column = ir.shift_left(softmax->group(), 2), to = ir.offset(row, ir.mul(column, size));
    to = ir.offset(to, 16 * tile * size);
    Value x = ir.encode(p.out, ir.mulf(sums, ir.pack({factor, factor, factor, factor})));
    if (left >= 16) return ir.store(x, to, size);
    ir.branch(ir.less(column, left - 3), [&] { ir.store(x, to, size); });
    if (left % 4 == 0) return;
    ir.branch(ir.equal(column, ir.c(left - left % 4)), [&] {
      for (int64_t i = 0; i < left % 4; ++i) ir.store(ir.extract(x, i), ir.offset(to, i * size), size);
    });
  }

  /// Of the block's split, sums as they are: all that the second launch adds up.
  void store_parts(const Values& all) {
    const Values state(llvm::ArrayRef<Value>(all).drop_front(sum_count()));
    const int64_t stored = round_up(p.value_dim, 8);
    for (int64_t i = 0; i < t.row_tiles(); ++i) {
      const AttentionBlock::Row row = softmax->row(i);
      const MfmaSoftmax::Part part = softmax->part(state, i);
      ir.branch(block.exists(row), [&] {
        Value to = block.record(row.token, row.head), column = ir.shift_left(softmax->group(), 2);
        ir.branch(ir.equal(column, ir.c(0)), [&] { ir.store(ir.pack({part.most, part.sum}), to, 8); });
        to = ir.offset(ir.offset(to, t.record - 4 * stored), ir.mul(column, 4));
        for (int64_t tile = 0; tile < t.column_tiles(); ++tile) {
          const auto write = [&] {
            ir.store(all[size_t(i * t.column_tiles() + tile)], ir.offset(to, 64 * tile), 16);
          };
          const int64_t left = stored - 16 * tile;
          if (left >= 16)
            write();
          else
            ir.branch(ir.less(column, left), write);
        }
      });
    }
  }
};

} // namespace

Kernel MfmaAttention::emit(mlir::ModuleOp module, const Attention& p, const std::string& arch,
                           const Config& config) const {
  const MfmaAttentionTiling t(p, arch, config);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = arch;
  kernel.args = gpu_arguments(p);
  if (t.splits > 1) kernel.args.insert(kernel.args.end(), {"workspace", "batch"});
  kernel.workspace = t.workspace(p);
  kernel.align_a = size_of(p.kv);
  kernel.align_d = size_of(p.out);
  AmdIr ir(module, kernel.target);
  GpuEntry entry;
  entry.name = kernel_symbol, entry.threads = t.threads, entry.min_blocks = t.resident,
  entry.shared = t.shared;
  ir.kernel(entry, p, kernel.args,
            [&](const GpuIr::Arguments& arguments) { MfmaAttentionNest(ir, p, t, arguments).emit(); });
  kernel.launches.push_back(t.launch(p, t.threads));
  if (t.splits > 1)
    kernel.launches.push_back(combine_parts(ir, p, t, kernel.args, {false, ir.arch.wave, true}));
  return kernel;
}

} // namespace deepgen
