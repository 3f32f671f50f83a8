#include "templates/gpu/attention/attention_combine.h"

#include "templates/core/sizes.h"
#include "templates/gpu/attention/attention_block.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr int64_t kColumns = 4;  ///< of a thread
constexpr int64_t kTogether = 8; ///< parts that are on their way at once

/// A block has a row: each thread some of its columns, of all parts.
class AttentionParts {
public:
  AttentionParts(GpuIr& builder, const Attention& problem, const AttentionTile& tiling,
                 const GpuIr::Arguments& args, const CombineForm& how)
      : ir(builder), p(problem), t(tiling), arguments(args), form(how),
        block(builder, problem, tiling, args) {}

  void emit() {
    ir.launch_dependents();
    ir.wait_for_predecessor();
    column = ir.mul(ir.thread(), kColumns);
    block.enter_row(
        [&](Value token, Value head) { ir.branch(ir.less(column, stored()), [&] { add_up(token, head); }); });
  }

private:
  GpuIr& ir;
  const Attention& p;
  const AttentionTile& t;
  const GpuIr::Arguments& arguments;
  const CombineForm& form;
  AttentionBlock block;
  Value column, parts; ///< the thread's first column; where the row's first part is

  int64_t stored() const { return round_up(p.value_dim, 8); } ///< columns of a part
  Value number(double x) { return ir.number(ir.f32, x); }
  /// The maximum and sum of a part; `first`: the first part's place.
  Values head_of(Value first, int64_t split) {
    return ir.unpack(ir.load_global(ir.lanes(2, ir.f32), ir.offset(first, split * t.record), 8));
  }
  Value sums_of(Value first, int64_t split) {
    Value at = ir.offset(ir.offset(first, split * t.record + t.record - 4 * stored()), ir.mul(column, 4));
    return ir.load_global(ir.lanes(kColumns, ir.f32), at, 16);
  }

  /// `body` of the parts [0, count) from a place on, of all parts in order.
  Values over_parts(Values carried, const std::function<Values(Value first, int64_t count, Values)>& body) {
    if (!form.rolled || t.splits <= kTogether) return body(parts, t.splits, std::move(carried));
    return ir.rolled_loop(ir.c(0), ir.c(t.splits), kTogether, carried, [&](Value s, mlir::ValueRange x) {
      return body(ir.offset(parts, ir.mul(s, t.record)), kTogether, Values(x)); // splits: a power of two
    });
  }

  void add_up(Value token, Value head) {
    parts = block.record(token, head);
    Value most = over_parts({number(-INFINITY)}, [&](Value first, int64_t count, Values x) {
      for (int64_t s = 0; s < count; ++s) x[0] = ir.larger(x[0], head_of(first, s)[0]);
      return x;
    })[0];
    Value sink;
    if (p.sink) {
      Value at = ir.offset(arguments.at("sink"), ir.mul(ir.to_i64(head), 4));
      sink = ir.mulf(ir.load_global(ir.f32, at, 4), number(kLog2OfE));
      most = ir.larger(most, sink);
    }
    // From minus infinity nothing can be subtracted.
    Value origin = ir.select(ir.is_not(most, -INFINITY), most, number(0));
    Values start = {p.sink ? ir.exp2_fast(ir.subf(sink, origin)) : number(0)};
    start.append(size_t(kColumns), number(0));
    const Values all = over_parts(start, [&](Value first, int64_t count, Values x) {
      for (int64_t s = 0; s < count; s += kTogether)
        weigh(first, s, std::min(s + kTogether, count), origin, x);
      return x;
    });
    store(Values(llvm::ArrayRef<Value>(all).drop_front(1)), all[0], most, token, head);
  }

  /// Adds the parts [from, to) to a sum and its columns.
  void weigh(Value first, int64_t from, int64_t to, Value origin, Values& x) {
    std::vector<Values> heads, sums;
    for (int64_t s = from; s < to; ++s)
      heads.push_back(head_of(first, s)), sums.push_back(ir.unpack(sums_of(first, s)));
    for (size_t i = 0; i < heads.size(); ++i) {
      Value weight = ir.exp2_fast(ir.subf(heads[i][0], origin));
      x[0] = ir.multiply_add(weight, heads[i][1], x[0]);
      for (size_t j = 0; j < size_t(kColumns); ++j) x[j + 1] = ir.multiply_add(weight, sums[i][j], x[j + 1]);
    }
  }

  void store(const Values& sums, Value sum, Value most, Value token, Value head) {
    Value factor = ir.select(ir.is_not(sum, 0.0), ir.reciprocal_fast(sum), number(0));
    const int64_t size = size_of(p.out);
    Value to = ir.offset(block.address("out", p.out, token, head), ir.mul(column, size));
    for (int64_t i = 0; i < kColumns; i += 2) {
      Value x = ir.mulf(sums[size_t(i)], factor), y = ir.mulf(sums[size_t(i + 1)], factor);
      const auto one = [&](Value z, int64_t j) {
        ir.branch(ir.less(column, p.value_dim - j),
                  [&] { ir.store(ir.encode(p.out, z), ir.offset(to, j * size), size); });
      };
      if (form.paired)
        ir.store(ir.encode(p.out, ir.pack({x, y})), ir.offset(to, i * size), 2 * size);
      else
        one(x, i), one(y, i + 1);
    }
    if (!p.lse) return;
    Value lse = ir.mulf(ir.addf(most, ir.log2_fast(sum)), number(kLogOf2));
    ir.branch(ir.equal(column, ir.c(0)),
              [&] { ir.store(lse, block.address("lse", Type::f32, token, head), 4); });
  }
};

} // namespace

Launch combine_parts(GpuIr& ir, const Attention& p, const AttentionTile& t,
                     const std::vector<std::string>& arguments, const CombineForm& form) {
  Launch launch;
  launch.entry = "deepgen_combine";
  launch.block = {round_up(ceil_div(p.value_dim, kColumns), form.wave), 1, 1};
  // Of a call that is split: others start no more blocks than that, which do nothing.
  launch.grid = {std::min(p.queries, t.split_tokens), p.heads,
                 std::min(most_attention_batch, t.split_tokens)};
  launch.grid_rules[0] = {1, {1, 0, 0, 0}};
  launch.grid_rules[2] = {1, {0, 0, 0, 1}};
  launch.dependent = ir.launches_early();
  GpuEntry entry;
  entry.name = launch.entry, entry.threads = launch.block[0];
  ir.kernel(entry, p, arguments,
            [&](const GpuIr::Arguments& args) { AttentionParts(ir, p, t, args, form).emit(); });
  return launch;
}

} // namespace deepgen
