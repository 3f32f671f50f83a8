#include "templates/micro_kernel.h"

#include "base/error.h"
#include "templates/epilogue.h"

#include <algorithm>

namespace deepgen {

const std::vector<std::string>& gemm_args() {
  static const std::vector<std::string> names = {
      "a",   "b",   "c",     "d",    "bias",     "workspace", "lda",      "ldb",
      "ldc", "ldd", "alpha", "beta", "stride_a", "stride_b",  "stride_c", "stride_d",
      "m0",  "m1",  "n0",    "n1",   "b0",       "b1"};
  return names;
}

Value load_arg(Ir& ir, Value args, const std::string& name) {
  const auto& names = gemm_args();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw Error("no argument slot '" + name + "'");
  const bool is_pointer = at - names.begin() < 6, is_scalar = name == "alpha" || name == "beta";
  return ir.load(is_pointer  ? ir.pointer
                 : is_scalar ? ir.element
                             : ir.i64,
                 ir.at_byte(args, 8 * (at - names.begin())), 8);
}

namespace {

/// Emits the body of one micro-kernel; the members are its parameters and what is derived from them.
class Emitter {
public:
  Emitter(Ir& builder, const std::vector<EpilogueOp>& epilogue, const MicroTile& shape,
          mlir::ValueRange parameters)
      : ir(builder), ops(epilogue), tile(shape), args(parameters[0]), a(parameters[1]), lda(parameters[2]),
        b(parameters[3]), ldb(parameters[4]), d(parameters[5]), c(parameters[6]), bias(parameters[7]),
        kc(parameters[8]), first(parameters[9]), last(parameters[10]), lanes(ir.isa.lanes()),
        dot(shape.b == Access::k_columns), vectors(dot ? tile.columns : (tile.columns + lanes - 1) / lanes) {}

  void emit() {
    ldd = load_arg(ir, args, "ldd");
    prefetch_d();
    finish(dot ? sum(product()) : product());
  }

private:
  Ir& ir;
  const std::vector<EpilogueOp>& ops;
  const MicroTile& tile;
  Value args, a, lda, b, ldb, d, c, bias, kc, first, last, ldd;
  const int64_t lanes;
  const bool dot;
  int64_t vectors; ///< accumulators per row

  int64_t valid(int64_t j) const { return std::min(lanes, tile.columns - j * lanes); }
  Value flag(Value x) { return ir.not_equal(x, ir.constant(0)); }

  void prefetch_d() {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < tile.columns; j += 64 / size_of(ir.isa.element))
        ir.prefetch(ir.at(ir.at(d, ir.mul(ldd, r)), j), true);
  }

  /// One step of k (lanes steps in the dot form): acc += A column * B row. `count` lanes exist in the dot
  /// form.
  void step(Values& acc, Value a_at, Value b_at, int64_t u, int64_t count, bool prefetch) {
    Values right;
    for (int64_t j = 0; j < vectors; ++j)
      right.push_back(ir.load_vector(b_address(b_at, u, j), b_lanes(j, count)));
    if (prefetch && tile.prefetch)
      for (int64_t j = 0; j < vectors; ++j) ir.prefetch(b_address(b_at, u + tile.prefetch, j), false);
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value at = a_address(a_at, u, r);
      Value left = dot ? ir.load_vector(at, count) : ir.splat(ir.load_scalar(at));
      for (int64_t j = 0; j < vectors; ++j) {
        Value& sum = acc[size_t(r * vectors + j)];
        sum = ir.fma(left, right[size_t(j)], sum);
      }
    }
  }

  int64_t b_lanes(int64_t j, int64_t count) const {
    if (dot) return count;
    return tile.b == Access::panel ? lanes : valid(j); // panels are padded
  }
  Value a_address(Value at, int64_t u, int64_t r) {
    if (tile.a == Access::panel) return ir.at(at, u * tile.a_width + r);
    if (tile.a == Access::k_rows) return ir.at(ir.at(at, ir.mul(lda, u)), r);
    return ir.at(ir.at(at, ir.mul(lda, r)), dot ? u * lanes : u);
  }
  Value b_address(Value at, int64_t u, int64_t j) {
    if (dot) return ir.at(ir.at(at, ir.mul(ldb, j)), u * lanes);
    if (tile.b == Access::panel) return ir.at(at, u * tile.b_width + j * lanes);
    return ir.at(ir.at(at, ir.mul(ldb, u)), j * lanes);
  }
  Value advance(Value at, Access access, int64_t width, Value ld, int64_t steps) {
    if (access == Access::panel) return ir.at(at, width * steps);
    if (access == Access::k_rows) return ir.at(at, ir.mul(ld, steps));
    return ir.at(at, dot ? steps * lanes : steps);
  }

  Values product() {
    Values state(size_t(tile.rows * vectors), ir.splat(0.0));
    state.push_back(a), state.push_back(b);
    Value steps = dot ? ir.shift_right(kc, lanes) : kc;
    Value whole = tile.k_multiple ? steps : ir.sub(steps, ir.remainder(steps, tile.unroll));
    state = k_loop(state, ir.constant(0), whole, tile.unroll);
    if (!tile.k_multiple && tile.unroll > 1) state = k_loop(state, whole, steps, 1);
    Value b_end = state.pop_back_val(), a_end = state.pop_back_val();
    if (!dot || tile.k_tail == 0) return state;
    auto tail = [&] {
      Values next = state;
      step(next, a_end, b_end, 0, tile.k_tail, false);
      return next;
    };
    if (tile.single_block) return tail();
    return ir.branch(flag(last), mlir::ValueRange(state).getTypes(), tail, [&] { return state; });
  }

  Values k_loop(const Values& state, Value from, Value to, int64_t unroll) {
    return ir.loop(from, to, unroll, state, [&](Value, mlir::ValueRange carried) {
      Values next(carried);
      Value b_at = next.pop_back_val(), a_at = next.pop_back_val();
      for (int64_t u = 0; u < unroll; ++u) step(next, a_at, b_at, u, lanes, true);
      next.push_back(advance(a_at, tile.a, tile.a_width, lda, unroll));
      next.push_back(advance(b_at, tile.b, tile.b_width, ldb, unroll));
      return next;
    });
  }

  /// Dot form: every accumulator becomes one lane of its row's vectors.
  Values sum(const Values& acc) {
    const int64_t row_vectors = (tile.columns + lanes - 1) / lanes;
    Values rows;
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t v = 0; v < row_vectors; ++v) {
        Value row = ir.splat(0.0);
        for (int64_t j = v * lanes; j < std::min(tile.columns, (v + 1) * lanes); ++j)
          row = ir.insert(ir.sum_lanes(acc[size_t(r * tile.columns + j)]), row, j - v * lanes);
        rows.push_back(row);
      }
    vectors = row_vectors;
    return rows;
  }

  /// D = alpha acc (+ beta C, or + D after the first block), then the epilogue.
  void finish(Values acc) {
    Value alpha = load_arg(ir, args, "alpha"), beta = load_arg(ir, args, "beta");
    Value one = ir.scalar(1.0);
    Value base = c, ld = load_arg(ir, args, "ldc"), scale = beta, adds = ir.is_not(beta, 0.0);
    if (!tile.single_block) {
      Value is_first = flag(first);
      base = ir.select(is_first, c, d), ld = ir.select(is_first, ld, ldd),
      scale = ir.select(is_first, beta, one);
      adds = ir.is_not(scale, 0.0);
    }
    mlir::TypeRange types = mlir::ValueRange(acc).getTypes();
    acc = ir.branch(
        ir.is_not(alpha, 1.0), types, [&] { return multiplied(acc, alpha); }, [&] { return acc; });
    acc = ir.branch(
        adds, types, [&] { return added(acc, base, ld, scale); }, [&] { return acc; });
    if (ops.empty()) return store(acc);
    if (!is_cheap(ops)) {
      store(acc);
      return on_last([&] { epilogue_rows(); });
    }
    if (tile.single_block) return store(with_epilogue(acc));
    store(ir.branch(
        flag(last), types, [&] { return with_epilogue(acc); }, [&] { return acc; }));
  }

  void on_last(const std::function<void()>& body) {
    if (tile.single_block)
      body();
    else
      ir.branch(flag(last), body);
  }

  Values multiplied(const Values& acc, Value alpha) {
    Values out;
    Value factor = ir.splat(alpha);
    for (Value x : acc) out.push_back(ir.mulf(x, factor));
    return out;
  }

  Values added(const Values& acc, Value base, Value ld, Value scale) {
    Values out;
    Value factor = ir.splat(scale);
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < vectors; ++j) {
        Value old = ir.load_vector(ir.at(ir.at(base, ir.mul(ld, r)), j * lanes), valid(j));
        out.push_back(ir.fma(factor, old, acc[size_t(r * vectors + j)]));
      }
    return out;
  }

  Value bias_vector(int64_t j) {
    bool used = std::find(ops.begin(), ops.end(), EpilogueOp::bias) != ops.end();
    return used ? ir.load_vector(ir.at(bias, j * lanes), valid(j)) : Value();
  }

  Values with_epilogue(const Values& acc) {
    Values out(acc.size());
    for (int64_t j = 0; j < vectors; ++j) {
      Value shift = bias_vector(j);
      for (int64_t r = 0; r < tile.rows; ++r) {
        const size_t i = size_t(r * vectors + j);
        out[i] = apply_epilogue(ir, ops, acc[i], [&](const EpilogueOperand&) { return shift; });
      }
    }
    return out;
  }

  /// A long epilogue, once in the code: over the rows of the finished tile, which are in the first-level
  /// cache.
  void epilogue_rows() {
    Values shifts;
    for (int64_t j = 0; j < vectors; ++j) shifts.push_back(bias_vector(j));
    ir.loop(ir.constant(0), ir.constant(tile.rows), 1, [&](Value r) {
      Value row = ir.at(d, ir.mul(r, ldd));
      for (int64_t j = 0; j < vectors; ++j) {
        Value at = ir.at(row, j * lanes);
        Value x = apply_epilogue(ir, ops, ir.load_vector(at, valid(j)),
                                 [&](const EpilogueOperand&) { return shifts[size_t(j)]; });
        ir.store_vector(x, at, valid(j));
      }
    });
  }

  void store(const Values& acc) {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < vectors; ++j)
        ir.store_vector(acc[size_t(r * vectors + j)], ir.at(ir.at(d, ir.mul(ldd, r)), j * lanes), valid(j));
  }
};

} // namespace

std::string micro_kernel(Ir& ir, const std::vector<EpilogueOp>& ops, const MicroTile& tile) {
  std::string name = "micro_" + std::to_string(tile.rows) + "x" + std::to_string(tile.columns);
  llvm::SmallVector<mlir::Type> parameters = {ir.pointer, ir.pointer, ir.i64, ir.pointer, ir.i64, ir.pointer,
                                              ir.pointer, ir.pointer, ir.i64, ir.i64,     ir.i64};
  ir.function(name, parameters, true,
              [&](mlir::ValueRange arguments) { Emitter(ir, ops, tile, arguments).emit(); });
  return name;
}

} // namespace deepgen
