// The loops of cpu_attention: batch entries, heads, blocks of rows, blocks of keys, strips.
#include "base/text/error.h"
#include "templates/core/sizes.h"
#include "templates/cpu/attention/cpu_attention_parts.h"
#include "templates/cpu/cpu_values.h"
#include "templates/cpu/rows/cpu_rows_math.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace deepgen {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

std::vector<std::string> attention_args(const Attention& p) {
  std::vector<std::string> args = {
      "q",           "key",       "value",     "out",       "workspace",  "m",           "n",
      "m0",          "m1",        "n0",        "n1",        "b0",         "b1",          "q_token",
      "q_head",      "q_batch",   "key_token", "key_head",  "key_batch",  "value_token", "value_head",
      "value_batch", "out_token", "out_head",  "out_batch", "score_scale"};
  if (p.lse) args.insert(args.end(), {"lse", "lse_token", "lse_head", "lse_batch"});
  if (p.sink) args.push_back("sink");
  if (p.bias) args.insert(args.end(), {"bias", "bias_query", "bias_head", "bias_batch"});
  if (p.varlen) args.push_back("query_offsets");
  if (p.varlen && !p.paged()) args.push_back("key_offsets");
  if (p.varlen || p.paged()) args.push_back("keys_used");
  if (p.paged()) args.insert(args.end(), {"page_table", "page_table_stride"});
  if (p.softcap) args.push_back("softcap");
  if (p.mask == AttentionMask::window) args.insert(args.end(), {"window_left", "window_right"});
  return args;
}

class AttentionNest {
public:
  AttentionNest(Ir& builder, const Attention& problem, const AttentionTiling& tiling)
      : ir(builder), p(problem), t(tiling), names(attention_args(problem)) {}

  /// The kernel's body: a call of attend() for each tile.
  void emit(Value block) {
    args = block;
    const std::string attend = attend_function();
    Value n0 = integer("n0"), n1 = integer("n1"), m0 = integer("m0"), m1 = integer("m1");
    ir.loop(integer("b0"), integer("b1"), 1, [&](Value b) {
      ir.loop(n0, n1, 1,
              [&](Value g) { ir.loop(m0, m1, 1, [&](Value tile) { ir.call(attend, {args, b, g, tile}); }); });
    });
  }

private:
  Ir& ir;
  const Attention& p;
  const AttentionTiling& t;
  const std::vector<std::string> names;
  Value args; ///< of the function whose body is being made

  /// What a batch entry has, and where.
  struct Entry {
    Value queries, keys;          ///< how many
    Value first_query, first_key; ///< of offsets
  };

  Value address(const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    if (size_t(at) == names.size()) throw Error("no argument slot '" + name + "'");
    return ir.at_byte(args, 8 * at);
  }
  Value pointer(const std::string& name) { return ir.load(ir.pointer, address(name), 8); }
  Value integer(const std::string& name) { return ir.load(ir.i64, address(name), 8); }
  Value number(const std::string& name) { return ir.load(ir.element, address(name), 8); }

  /// {first, count} by a table of offsets, or {0, count} where it is null.
  Values span(const std::string& offsets, Value b, Value count) {
    return ir.branch(
        ir.not_equal(integer(offsets), ir.constant(0)), {ir.i64, ir.i64},
        [&] {
          Value table = pointer(offsets), first = int32_at(ir, table, b);
          return Values{first, ir.sub(int32_at(ir, table, plus(ir, b, 1)), first)};
        },
        [&] { return Values{ir.constant(0), count}; });
  }
  Entry entry(Value b) {
    Entry e{integer("m"), integer("n"), ir.constant(0), ir.constant(0)};
    if (p.varlen) {
      const Values q = span("query_offsets", b, e.queries);
      e.first_query = q[0], e.queries = q[1];
    }
    if (p.varlen && !p.paged()) {
      const Values k = span("key_offsets", b, e.keys);
      e.first_key = k[0], e.keys = k[1];
    }
    if (!p.varlen && !p.paged()) return e;
    e.keys = ir.branch(
        ir.not_equal(integer("keys_used"), ir.constant(0)), {ir.i64},
        [&] {
          Value used = larger(ir, int32_at(ir, pointer("keys_used"), b), ir.constant(0));
          return Values{ir.min(used, e.keys)};
        },
        [&] { return Values{e.keys}; })[0];
    return e;
  }

  /// Where the row of a head's first token is.
  Value start(const std::string& name, Type type, Value b, Value first, Value head) {
    Value offset = ir.add(ir.mul(b, integer(name + "_batch")), ir.mul(first, integer(name + "_token")));
    return element_at(ir, type, pointer(name), ir.add(offset, ir.mul(head, integer(name + "_head"))));
  }
  /// The same of keys or values; with pages, of the first page.
  Value keys_start(const std::string& name, Value b, Value first, Value g) {
    if (!p.paged()) return start(name, p.kv, b, first, g);
    return element_at(ir, p.kv, pointer(name), ir.mul(g, integer(name + "_head")));
  }
  /// Of the bias of an entry's first token.
  Value bias_start(Value b, Value head) {
    Value offset = ir.add(ir.mul(b, integer("bias_batch")), ir.mul(head, integer("bias_head")));
    return element_at(ir, *p.bias, pointer("bias"), offset);
  }
  /// What packing a block that begins with key j of entry b takes beside the rest.
  Values pages(const std::string& name, Value b, Value j) {
    Value first = ir.mul(b, integer("page_table_stride"));
    Value table = mlir::LLVM::GEPOp::create(ir.b, ir.loc, ir.pointer, ir.b.getI32Type(),
                                            pointer("page_table"), mlir::ValueRange{first});
    return {table, integer(name + "_batch"), j};
  }
  Value scratch(Value base, int64_t at, Value index, int64_t each) {
    return ir.at(ir.at(base, at), ir.mul(index, each));
  }

  /// `body` for each row of a block, with its token and its head of the group.
  void for_rows(Value first, Value count,
                const std::function<void(Value row, Value token, Value head)>& body) {
    const int64_t group = p.group();
    Value token = mlir::arith::DivUIOp::create(ir.b, ir.loc, first, ir.constant(group));
    ir.loop(ir.constant(0), count, 1, {token, ir.remainder(first, group)},
            [&](Value row, mlir::ValueRange carried) {
              body(row, carried[0], carried[1]);
              Value next = plus(ir, carried[1], 1), ends = ir.equal(next, ir.constant(group));
              return Values{plus(ir, carried[0], ir.widen(ends)), ir.select(ends, ir.constant(0), next)};
            });
  }

  /// The keys that a token sees: {from, to}. shift: see AttentionMask.
  std::pair<Value, Value> bounds(Value token, Value shift, Value keys) {
    Value none = ir.constant(0), own = plus(ir, token, shift);
    const auto clamped = [&](Value x) { return ir.min(larger(ir, x, none), keys); };
    if (p.mask == AttentionMask::none) return {none, keys};
    if (p.mask != AttentionMask::window) return {none, clamped(plus(ir, own, 1))};
    const auto side = [&](const char* name) { return ir.min(integer(name), ir.constant(2 * most_tokens)); };
    Value left = side("window_left"), right = side("window_right");
    Value from = ir.select(less(ir, left, none), none, larger(ir, ir.sub(own, left), none));
    Value to = ir.select(less(ir, right, none), keys, clamped(plus(ir, plus(ir, own, right), 1)));
    return {from, to};
  }

  /// (args, scratch, q, sink, first, valid, padded, keys, shift): rows of Q times the scale, zeros behind the
  /// last; and what each row begins with.
  std::string begin_function() {
    const char* name = "begin_block";
    ir.function(name,
                {ir.pointer, ir.pointer, ir.pointer, ir.pointer, ir.i64, ir.i64, ir.i64, ir.i64, ir.i64},
                true, [&](mlir::ValueRange x) {
                  Value outer = args;
                  args = x[0];
                  Value scale = ir.splat(number("score_scale"));
                  for_rows(x[4], x[6], [&](Value row, Value token, Value head) {
                    begin_row(x, scale, row, token, head);
                  });
                  args = outer;
                });
    return name;
  }
  void begin_row(mlir::ValueRange x, Value scale, Value row, Value token, Value head) {
    const int64_t lanes = t.isa.lanes();
    Value base = x[1], zero = ir.splat(0.0);
    Value to = scratch(base, t.q_at, row, t.q_ld);
    ir.branch(
        less(ir, row, x[5]),
        [&] {
          Value from = ir.add(ir.mul(token, integer("q_token")), ir.mul(head, integer("q_head")));
          for (int64_t j = 0; j < t.q_ld; j += lanes) {
            Value at = element_at(ir, p.q, x[2], ir.add(from, j));
            Value q = load_values(ir, p.q, at, std::min(lanes, p.head_dim - j));
            ir.store_vector(ir.mulf(q, scale), ir.at(to, j), lanes);
          }
        },
        [&] {
          for (int64_t j = 0; j < t.q_ld; j += lanes) ir.store_vector(zero, ir.at(to, j), lanes);
        });
    Value out = scratch(base, t.out_at, row, t.value_ld);
    for (int64_t j = 0; j < t.value_ld; j += lanes) ir.store_vector(zero, ir.at(out, j), lanes);
    const auto [first, last] = bounds(token, x[8], x[7]);
    store_bound(first, scratch(base, t.from_at, row, bound_elements));
    store_bound(last, scratch(base, t.to_at, row, bound_elements));
    if (p.bias) { // of a row that only fills a strip: the first one's
      Value at = ir.add(ir.mul(token, integer("bias_query")), ir.mul(head, integer("bias_head")));
      store_bound(ir.select(less(ir, row, x[5]), at, ir.constant(0)),
                  scratch(base, t.bias_at, row, bound_elements));
    }
    Value most = ir.scalar(kNothing), sum = zero;
    if (p.sink) {
      most = ir.load_scalar(ir.at(x[3], head));
      Value one = ir.select(ir.is_not(most, kNothing), ir.scalar(1.0), ir.scalar(0.0));
      sum = ir.insert(one, sum, 0);
    }
    ir.store_scalar(most, scratch(base, t.most_at, row, 1));
    ir.store_vector(sum, scratch(base, t.sum_at, row, lanes), lanes);
  }
  void store_bound(Value x, Value at) { mlir::LLVM::StoreOp::create(ir.b, ir.loc, x, at, 8u); }
  Value bound(Value base, int64_t at, Value row) {
    return ir.load(ir.i64, scratch(base, at, row, bound_elements), 8);
  }

  /// (args, scratch, out, lse, first, valid)
  std::string end_function() {
    const char* name = "end_block";
    ir.function(name, {ir.pointer, ir.pointer, ir.pointer, ir.pointer, ir.i64, ir.i64}, true,
                [&](mlir::ValueRange x) {
                  Value outer = args;
                  args = x[0];
                  for_rows(x[4], x[5],
                           [&](Value row, Value token, Value head) { end_row(x, row, token, head); });
                  args = outer;
                });
    return name;
  }
  void end_row(mlir::ValueRange x, Value row, Value token, Value head) {
    const int64_t lanes = t.isa.lanes();
    Value sum = combine_lanes(ir, ir.load_vector(scratch(x[1], t.sum_at, row, lanes), lanes),
                              [&](Value a, Value b) { return ir.addf(a, b); });
    Value factor = ir.select(ir.is_not(sum, 0.0), ir.divf(ir.scalar(1.0), sum), ir.scalar(0.0));
    factor = ir.splat(factor);
    Value from = scratch(x[1], t.out_at, row, t.value_ld);
    Value to = ir.add(ir.mul(token, integer("out_token")), ir.mul(head, integer("out_head")));
    for (int64_t j = 0; j < t.value_ld; j += lanes)
      store_values(ir, p.out, ir.mulf(ir.load_vector(ir.at(from, j), lanes), factor),
                   element_at(ir, p.out, x[2], ir.add(to, j)), std::min(lanes, p.value_dim - j));
    if (!p.lse) return;
    Value most = ir.load_scalar(scratch(x[1], t.most_at, row, 1));
    Value at = ir.add(ir.mul(token, integer("lse_token")), ir.mul(head, integer("lse_head")));
    ir.store_scalar(ir.addf(most, log_of_sum(ir, sum)), ir.at(x[3], at));
  }

  /// (args, entry, head of K, tile)
  std::string attend_function() {
    const char* name = "attend";
    ir.function(name, {ir.pointer, ir.i64, ir.i64, ir.i64}, true, [&](mlir::ValueRange x) {
      Value outer = args;
      args = x[0];
      const Entry e = entry(x[1]);
      Value first = ir.mul(x[3], t.rows);
      Value left = ir.sub(ir.mul(e.queries, p.group()), first);
      ir.branch(less(ir, ir.constant(0), left),
                [&] { attend(x[1], x[2], first, ir.min(left, ir.constant(t.rows)), e); });
      args = outer;
    });
    return name;
  }

  void attend(Value b, Value g, Value first, Value valid, const Entry& e) {
    Value base = pointer("workspace"), head = ir.mul(g, p.group());
    Value q = start("q", p.q, b, e.first_query, head), out = start("out", p.out, b, e.first_query, head);
    Value lse = p.lse ? start("lse", Type::f32, b, e.first_query, head) : base;
    Value sink = p.sink ? ir.at(pointer("sink"), head) : base;
    Value bias = p.bias ? bias_start(b, head) : base;
    Value strips = quotient(ir, valid, t.mr), padded = ir.mul(strips, t.mr);
    Value shift = p.mask == AttentionMask::causal_top_left ? ir.constant(0) : ir.sub(e.keys, e.queries);
    ir.call(begin_function(), {args, base, q, sink, first, valid, padded, e.keys, shift});
    Value from = bound(base, t.from_at, ir.constant(0));
    Value to = bound(base, t.to_at, ir.sub(valid, ir.constant(1)));
    Value keys = keys_start("key", b, e.first_key, g), values = keys_start("value", b, e.first_key, g);
    std::string pack_keys, pack_values;
    if (!t.direct) pack_keys = pack_keys_function(ir, p, t), pack_values = pack_values_function(ir, p, t);
    const InPlace key{"key", keys, integer("key_token")}, value{"value", values, integer("value_token")};
    ir.loop(ir.sub(from, ir.remainder(from, t.bk)), to, t.bk, [&](Value j) {
      const KeyBlock block{b, j, ir.min(ir.constant(t.bk), ir.sub(to, j)), to, key, value};
      if (!t.direct) {
        pack(pack_keys, key, block, base, t.keys_at);
        pack(pack_values, value, block, base, t.values_at);
      }
      ir.loop(ir.constant(0), strips, 1, [&](Value s) { strip(base, bias, ir.mul(s, t.mr), block); });
    });
    ir.call(end_function(), {args, base, out, lse, first, valid});
  }

  /// Keys or values as a call has them; of pages, from the first one on.
  struct InPlace {
    const char* name;
    Value from, token;
  };
  struct KeyBlock {
    Value b, j, count, end; ///< the entry, the first key, how many, the end of what rows see
    const InPlace &key, &value;
  };
  Value first_of(const InPlace& x, const KeyBlock& block) {
    return p.paged() ? x.from : element_at(ir, p.kv, x.from, ir.mul(block.j, x.token));
  }
  void append_pages(Values& operands, const InPlace& x, const KeyBlock& block) {
    if (p.paged()) operands.append(pages(x.name, block.b, block.j));
  }
  void call_in_place(const std::string& function, Values operands, std::initializer_list<const InPlace*> rows,
                     const KeyBlock& block) {
    for (const InPlace* x : rows) {
      operands.append({first_of(*x, block), x->token});
      append_pages(operands, *x, block);
    }
    ir.call(function, operands);
  }
  void pack(const std::string& function, const InPlace& x, const KeyBlock& block, Value base, int64_t to) {
    Value first = first_of(x, block);
    Values operands = {first, x.token, ir.at(base, to), block.count};
    append_pages(operands, x, block);
    ir.call(function, operands);
  }

  /// A strip that begins with `row` meets a block of keys.
  void strip(Value base, Value bias, Value row, const KeyBlock& block) {
    Value j = block.j, count = block.count;
    Value last = plus(ir, row, t.mr - 1);
    Value least_to = bound(base, t.to_at, row), most_to = bound(base, t.to_at, last);
    Value least_from = bound(base, t.from_at, row), most_from = bound(base, t.from_at, last);
    Value seen = ir.min(ir.sub(most_to, j), count);
    Value any = mlir::arith::AndIOp::create(ir.b, ir.loc, less(ir, ir.constant(0), seen),
                                            less(ir, ir.sub(least_from, j), count));
    ir.branch(any, [&] {
      const int64_t lanes = t.isa.lanes();
      Value vectors = quotient(ir, seen, lanes);
      Value scores = ir.at(base, t.scores_at), factor = ir.at(base, t.factor_at);
      Value most = scratch(base, t.most_at, row, 1), sum = scratch(base, t.sum_at, row, lanes);
      Value q = scratch(base, t.q_at, row, t.q_ld);
      if (t.direct)
        call_in_place(direct_scores_function(ir, p, t), {q, scores, seen}, {&block.key, &block.value}, block);
      else
        ir.call(scores_function(ir, p, t), {q, ir.at(base, t.keys_at), scores, quotient(ir, seen, t.panel)});
      if (p.softcap)
        ir.branch(ir.is_not(number("softcap"), 0.0),
                  [&] { ir.call(softcap_function(ir, t), {address("softcap"), scores, vectors}); });
      if (p.bias)
        ir.call(bias_function(ir, p, t), {scores, element_at(ir, *p.bias, bias, j),
                                          scratch(base, t.bias_at, row, bound_elements), seen});
      Value ends = less(ir, ir.sub(least_to, j), ir.mul(vectors, lanes)), begins = less(ir, j, most_from);
      ir.branch(
          mlir::arith::OrIOp::create(ir.b, ir.loc, ends, begins),
          [&] {
            ir.call(softmax_function(ir, t, true),
                    {scores, most, sum, factor, vectors, scratch(base, t.from_at, row, bound_elements),
                     scratch(base, t.to_at, row, bound_elements), j});
          },
          [&] { ir.call(softmax_function(ir, t, false), {scores, most, sum, factor, vectors}); });
      const auto out = [&] { return scratch(base, t.out_at, row, t.value_ld); };
      if (t.direct)
        call_in_place(direct_weigh_function(ir, p, t), {scores, out(), factor, seen, ir.sub(block.end, j)},
                      {&block.value, &block.key}, block);
      else
        ir.call(weigh_function(ir, t), {scores, ir.at(base, t.values_at), out(), factor, seen});
    });
  }
};

} // namespace

Kernel CpuAttention::emit(mlir::ModuleOp module, const Attention& p, const std::string&,
                          const Config& config) const {
  const AttentionTiling t(p, config);
  Ir ir(module, t.isa);
  ir.function(kernel_symbol, {ir.pointer}, false,
              [&](mlir::ValueRange parameters) { AttentionNest(ir, p, t).emit(parameters[0]); });
  Kernel kernel;
  kernel.problem = p;
  kernel.choice = {name(), config};
  kernel.isa = t.isa.level;
  kernel.args = attention_args(p);
  // Blocks of packed rows: of `tokens` queries each, or where these are no whole number, as many as cover
  // them.
  const int64_t common = std::gcd(t.rows, p.group()), tokens = t.rows / common, blocks = p.group() / common;
  kernel.tile_rules[0] = {blocks, {tokens, 0, 0, 0}};
  kernel.tile_rules[2] = {1, {0, 0, 0, 1}};
  kernel.tiles_m = ceil_div(p.queries, tokens) * blocks;
  kernel.tiles_n = p.kv_heads;
  kernel.tiles_b = most_attention_batch;
  kernel.workspace = t.scratch_bytes;
  return kernel;
}

} // namespace deepgen
