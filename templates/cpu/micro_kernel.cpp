#include "templates/cpu/micro_kernel.h"

#include "base/text/error.h"
#include "templates/ir/ir_builder.h"

#include <algorithm>
#include <map>

namespace deepgen {

namespace {

/// Of all problems; the first kPointers are pointers.
constexpr const char* kCommonArgs[] = {
    "a",    "b",        "c",        "d",        "bias",     "workspace", "lda", "ldb", "ldc", "ldd", "alpha",
    "beta", "stride_a", "stride_b", "stride_c", "stride_d", "m0",        "m1",  "n0",  "n1",  "b0",  "b1"};
constexpr std::ptrdiff_t kPointers = 6;

} // namespace

std::vector<std::string> gemm_args(const Gemm& p) {
  std::vector<std::string> names(std::begin(kCommonArgs), std::end(kCommonArgs));
  for (const std::string& name : epilogue_args(p.epilogue, p.batch > 1))
    if (name != "bias") names.push_back(name);
  for (Size size : {Size::m, Size::n, Size::k}) // of the batch, a call has its own part
    if (p.ranged(size)) names.push_back(size_names[size_t(size)]);
  return names;
}

Value load_arg(Ir& ir, const Gemm& p, Value args, const std::string& name) {
  const std::vector<std::string> names = gemm_args(p);
  const auto at = std::find(names.begin(), names.end(), name) - names.begin();
  if (size_t(at) == names.size()) throw Error("no argument slot '" + name + "'");
  mlir::Type type = at < kPointers ? ir.pointer : name == "alpha" || name == "beta" ? ir.element : ir.i64;
  for (EpilogueOp op : p.epilogue)
    for (const EpilogueOperand& operand : operands_of(op))
      if (name == operand.name) type = operand.shape == OperandShape::value ? ir.element : ir.pointer;
  return ir.load(type, ir.at_byte(args, 8 * at), 8);
}

std::vector<EpilogueOperand> tile_operands(const Gemm& p) {
  std::vector<EpilogueOperand> out;
  for (EpilogueOp op : p.epilogue)
    for (const EpilogueOperand& operand : operands_of(op))
      if (op != EpilogueOp::bias && operand.shape <= OperandShape::matrix) out.push_back(operand);
  return out;
}

namespace {

/// Emits the body of one micro-kernel; the members are its parameters and what is derived from them.
class Emitter {
public:
  Emitter(Ir& builder, const Gemm& problem, const MicroTile& shape, mlir::ValueRange parameters)
      : ir(builder), p(problem), ops(p.epilogue), tile(shape), args(parameters[0]), a(parameters[1]),
        lda(parameters[2]), b(parameters[3]), ldb(parameters[4]), d(parameters[5]), c(parameters[6]),
        bias(parameters[7]), kc(parameters[8]), first(parameters[9]), last(parameters[10]),
        lanes(ir.isa.lanes()), dot(shape.b == Access::k_columns),
        vectors(dot ? tile.columns : (tile.columns + lanes - 1) / lanes * (p.gate ? 2 : 1)) {
    size_t next = 11;
    operands["bias"] = bias;
    if (tile.sums_ld) sums = parameters[next++];
    for (const EpilogueOperand& operand : tile_operands(p)) operands[operand.name] = parameters[next++];
    if (tile.ragged) ragged_columns = parameters[next++];
    if (tile.lines) ahead = parameters[next++];
  }

  void emit() {
    ldd = arg("ldd");
    sums_ld = ldd;
    if (tile.sums_ld)
      sums_ld = ir.constant(tile.sums_ld);
    else
      sums = d;
    prefetch_d();
    finish(dot ? sum(product()) : product());
  }

private:
  Ir& ir;
  const Gemm& p;
  const std::vector<EpilogueOp>& ops;
  const MicroTile& tile;
  Value args, a, lda, b, ldb, d, c, bias, kc, first, last, ldd, sums, sums_ld, ragged_columns, ahead;
  std::map<std::string, Value> operands; ///< of the epilogue: addresses; leading dimensions and splat values
  const int64_t lanes;
  const bool dot;
  int64_t
      vectors; ///< accumulators per row; with a gate, first those of one weight, then as many of the other

  /// Where vector j of a row of sums is in a panel of B, and in scratch.
  int64_t column_of(int64_t j) const {
    const int64_t half = vectors / 2;
    return p.gate && j >= half ? tile.b_width / 2 + (j - half) * lanes : j * lanes;
  }
  int64_t valid(int64_t j) const { return std::min(lanes, tile.columns - j * lanes); }
  /// Whether the columns of vector j are known at run time.
  bool is_ragged(int64_t j) const { return tile.ragged && (j + 1) * lanes == tile.columns; }
  /// The columns that exist of vector j.
  Value load_valid(Value address, int64_t j) {
    return is_ragged(j) ? ir.load_vector(address, ragged_columns) : ir.load_vector(address, valid(j));
  }
  void store_valid(Value x, Value address, int64_t j) {
    is_ragged(j) ? ir.store_vector(x, address, ragged_columns) : ir.store_vector(x, address, valid(j));
  }
  Value arg(const std::string& name) { return load_arg(ir, p, args, name); }
  Value flag(Value x) { return ir.not_equal(x, ir.constant(0)); }

  void prefetch_d() {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < tile.columns; j += 64 / size_of(ir.isa.element))
        ir.prefetch(ir.at(ir.at(d, ir.mul(ldd, r)), j), true);
  }

  /// One step of k (lanes steps in the dot form): acc += A column * B row. `count` lanes exist in the dot
  /// form; kAtRunTime: what is left of kc.
  void step(Values& acc, Value a_at, Value b_at, int64_t u, int64_t count, bool prefetch) {
    Values right;
    for (int64_t j = 0; j < vectors; ++j) right.push_back(load_b(b_address(b_at, u, j), j, count));
    if (prefetch && tile.prefetch)
      for (int64_t j = 0; j < vectors; ++j) ir.prefetch(b_address(b_at, u + tile.prefetch, j), false);
    if (prefetch && tile.next_rows)
      for (int64_t j = 0; j < vectors; ++j) ir.prefetch(b_address(b_at, u, j + tile.next_rows), false, false);
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value at = a_address(a_at, u, r);
      Value left = dot ? load_steps(at, count) : ir.splat(ir.load_scalar(at));
      for (int64_t j = 0; j < vectors; ++j) {
        Value& sum = acc[size_t(r * vectors + j)];
        sum = ir.fma(left, right[size_t(j)], sum);
      }
    }
  }

  static constexpr int64_t kAtRunTime = -1;
  Value load_steps(Value at, int64_t count) {
    return count == kAtRunTime ? ir.load_vector(at, ir.remainder(kc, lanes)) : ir.load_vector(at, count);
  }
  Value load_b(Value at, int64_t j, int64_t count) {
    if (dot) return load_steps(at, count);
    return tile.b == Access::panel ? ir.load_vector(at, lanes) : load_valid(at, j); // panels are padded
  }
  Value a_address(Value at, int64_t u, int64_t r) {
    if (tile.a == Access::panel) return ir.at(at, (u * tile.a_width + r) * (dot ? lanes : 1));
    if (tile.a == Access::k_rows) return ir.at(ir.at(at, ir.mul(lda, u)), r);
    return ir.at(ir.at(at, ir.mul(lda, r)), dot ? u * lanes : u);
  }
  Value b_address(Value at, int64_t u, int64_t j) {
    if (dot) return ir.at(ir.at(at, ir.mul(ldb, j)), u * lanes);
    if (tile.b == Access::panel) return ir.at(at, u * tile.b_width + column_of(j));
    return ir.at(ir.at(at, ir.mul(ldb, u)), j * lanes);
  }
  Value advance(Value at, Access access, int64_t width, Value ld, int64_t steps) {
    if (access == Access::panel) return ir.at(at, width * steps * (dot ? lanes : 1));
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
    if (!dot || (tile.k_tail == 0 && !tile.k_ragged)) return state;
    auto tail = [&] {
      Values next = state;
      step(next, a_end, b_end, 0, tile.k_ragged ? kAtRunTime : tile.k_tail, false);
      return next;
    };
    if (tile.k_ragged) // blocks before the last one are whole vectors
      return ir.branch(flag(ir.remainder(kc, lanes)), mlir::ValueRange(state).getTypes(), tail,
                       [&] { return state; });
    if (tile.single_block) return tail();
    return ir.branch(flag(last), mlir::ValueRange(state).getTypes(), tail, [&] { return state; });
  }

  Values k_loop(const Values& state, Value from, Value to, int64_t unroll) {
    return ir.loop(from, to, unroll, state, [&](Value k, mlir::ValueRange carried) {
      Values next(carried);
      Value b_at = next.pop_back_val(), a_at = next.pop_back_val();
      if (unroll == tile.unroll) ask_for_lines(k);
      for (int64_t u = 0; u < unroll; ++u) step(next, a_at, b_at, u, lanes, true);
      next.push_back(advance(a_at, tile.a, tile.a_width, lda, unroll));
      next.push_back(advance(b_at, tile.b, tile.b_width, ldb, unroll));
      return next;
    });
  }

  void ask_for_lines(Value k) {
    constexpr int64_t kLine = 64;
    for (int64_t i = 0; i < tile.lines; ++i) {
      const int64_t elements = kLine / size_of(ir.isa.element);
      Value line = ir.at(ahead, ir.mul(k, tile.lines * elements / tile.unroll));
      ir.prefetch(ir.at(line, i * elements), false, false);
    }
  }

  Value lanes_of(Value sum) { return p.batch_invariant ? ir.sum_lanes_by_halves(sum) : ir.sum_lanes(sum); }

  /// Dot form: every accumulator becomes one lane of its row's vectors.
  Values sum(const Values& acc) {
    const int64_t row_vectors = (tile.columns + lanes - 1) / lanes;
    Values rows;
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t v = 0; v < row_vectors; ++v) {
        Value row = ir.splat(0.0);
        for (int64_t j = v * lanes; j < std::min(tile.columns, (v + 1) * lanes); ++j)
          row = ir.insert(lanes_of(acc[size_t(r * tile.columns + j)]), row, j - v * lanes);
        rows.push_back(row);
      }
    vectors = row_vectors;
    return rows;
  }

  /// D = alpha acc (+ beta C, or + the sums so far after the first block), then the epilogue.
  void finish(Values acc) {
    if (p.gate) return finish_gated(acc);
    Value alpha = arg("alpha"), beta = arg("beta");
    Value one = ir.scalar(1.0);
    Value base = c, ld = arg("ldc"), scale = beta, adds = ir.is_not(beta, 0.0);
    if (!tile.single_block) {
      Value is_first = flag(first);
      base = ir.select(is_first, c, sums), ld = ir.select(is_first, ld, sums_ld),
      scale = ir.select(is_first, beta, one);
      adds = ir.is_not(scale, 0.0);
    }
    mlir::TypeRange types = mlir::ValueRange(acc).getTypes();
    acc =
        ir.branch(ir.is_not(alpha, 1.0), types, [&] { return multiplied(acc, alpha); }, [&] { return acc; });
    acc = ir.branch(adds, types, [&] { return added(acc, base, ld, scale); }, [&] { return acc; });
    if (ops.empty()) return store(acc, d, ldd);
    if (!is_cheap(ops)) {
      store(acc, sums, sums_ld);
      return on_last([&] { epilogue_rows(); });
    }
    if (tile.single_block) return store(with_epilogue(acc), d, ldd);
    if (tile.sums_ld)
      return ir.branch(
          flag(last), [&] { store(with_epilogue(acc), d, ldd); }, [&] { store(acc, sums, sums_ld); });
    store(ir.branch(flag(last), types, [&] { return with_epilogue(acc); }, [&] { return acc; }), d, ldd);
  }

  /// Sums of both weights stay in scratch, times alpha, until the last block of K. The gate has an
  /// exponential: it is emitted once, in a loop over rows, as every long epilogue.
  void finish_gated(Values acc) {
    Value alpha = arg("alpha");
    mlir::TypeRange types = mlir::ValueRange(acc).getTypes();
    acc =
        ir.branch(ir.is_not(alpha, 1.0), types, [&] { return multiplied(acc, alpha); }, [&] { return acc; });
    if (!tile.single_block)
      acc = ir.branch(
          flag(first), types, [&] { return acc; },
          [&] {
            Values out = acc;
            for_sums([&](size_t i, Value at) { out[i] = ir.addf(out[i], ir.load_vector(at, lanes)); });
            return out;
          });
    for_sums([&](size_t i, Value at) { ir.store_vector(acc[i], at, lanes); });
    on_last([&] { gated_rows(); });
  }

  /// `body` for each accumulator's number and where it is in scratch.
  void for_sums(const std::function<void(size_t, Value)>& body) {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < vectors; ++j)
        body(size_t(r * vectors + j), ir.at(ir.at(sums, ir.mul(sums_ld, r)), column_of(j)));
  }

  void gated_rows() {
    vectors /= 2;
    load_tile_operands();
    Value ldc = arg("ldc"), beta = arg("beta"), adds = ir.is_not(beta, 0.0);
    std::vector<Columns> columns;
    for (int64_t j = 0; j < vectors; ++j) columns.push_back(load_columns(j));
    ir.loop(ir.constant(0), ir.constant(tile.rows), 1, [&](Value r) {
      Value to = ir.at(d, ir.mul(r, ldd)), from = ir.at(sums, ir.mul(r, sums_ld)),
            old = ir.at(c, ir.mul(r, ldc));
      for (int64_t j = 0; j < vectors; ++j) {
        Value gate = ir.load_vector(ir.at(from, j * lanes), lanes);
        Value up = ir.load_vector(ir.at(from, tile.b_width / 2 + j * lanes), lanes);
        gate = apply_epilogue(ir, {*p.gate}, gate, [](const EpilogueOperand&) { return Value(); });
        Value x = ir.mulf(gate, up);
        x = ir.branch(
            adds, {x.getType()},
            [&] { return Values{ir.fma(ir.splat(beta), load_valid(ir.at(old, j * lanes), j), x)}; },
            [&] { return Values{x}; })[0];
        store_valid(finished(x, r, j, columns[size_t(j)]), ir.at(to, j * lanes), j);
      }
    });
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
        Value old = load_valid(ir.at(ir.at(base, ir.mul(ld, r)), j * lanes), j);
        out.push_back(ir.fma(factor, old, acc[size_t(r * vectors + j)]));
      }
    return out;
  }

  /// Loads what the epilogue needs once for the tile: leading dimensions and single values.
  void load_tile_operands() {
    for (EpilogueOp op : ops)
      for (const EpilogueOperand& operand : operands_of(op)) {
        const std::string name = operand.name;
        if (operand.shape == OperandShape::matrix) operands["ld_" + name] = arg("ld_" + name);
        if (operand.shape == OperandShape::value) operands[name] = ir.splat(arg(name));
        if (operand.shape == OperandShape::single) operands[name] = ir.splat(ir.load_scalar(arg(name)));
      }
  }

  using Columns = std::map<std::string, Value>; ///< operands with one value for each column, of one vector
  Columns load_columns(int64_t j) {
    Columns out;
    for (EpilogueOp op : ops)
      for (const EpilogueOperand& operand : operands_of(op))
        if (operand.shape == OperandShape::column)
          out[operand.name] = load_valid(ir.at(operands[operand.name], j * lanes), j);
    return out;
  }

  /// The epilogue of vector j of a row, which is an int64_t or a Value.
  template <typename Row>
  Value finished(Value x, Row row, int64_t j, Columns& columns) {
    return apply_epilogue(ir, ops, x, [&](const EpilogueOperand& operand) -> Value {
      const std::string name = operand.name;
      switch (operand.shape) {
      case OperandShape::column:
        return columns[name];
      case OperandShape::row:
        return ir.splat(ir.load_scalar(ir.at(operands[name], row)));
      case OperandShape::matrix: {
        Value at = ir.at(operands[name], ir.mul(operands["ld_" + name], row));
        return load_valid(ir.at(at, j * lanes), j);
      }
      case OperandShape::single:
      case OperandShape::value:
        break;
      }
      return operands[name];
    });
  }

  Values with_epilogue(const Values& acc) {
    load_tile_operands();
    Values out(acc.size());
    for (int64_t j = 0; j < vectors; ++j) {
      Columns columns = load_columns(j);
      for (int64_t r = 0; r < tile.rows; ++r) {
        const size_t i = size_t(r * vectors + j);
        out[i] = finished(acc[i], r, j, columns);
      }
    }
    return out;
  }

  /// A long epilogue, once in the code: over the rows of the finished tile, which are in the first-level
  /// cache.
  void epilogue_rows() {
    load_tile_operands();
    std::vector<Columns> columns;
    for (int64_t j = 0; j < vectors; ++j) columns.push_back(load_columns(j));
    ir.loop(ir.constant(0), ir.constant(tile.rows), 1, [&](Value r) {
      Value row = ir.at(d, ir.mul(r, ldd));
      Value from = tile.sums_ld ? ir.at(sums, ir.mul(r, sums_ld)) : row;
      for (int64_t j = 0; j < vectors; ++j) {
        Value at = ir.at(row, j * lanes);
        Value x = load_valid(tile.sums_ld ? ir.at(from, j * lanes) : at, j);
        store_valid(finished(x, r, j, columns[size_t(j)]), at, j);
      }
    });
  }

  void store(const Values& acc, Value to, Value ld) {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < vectors; ++j)
        store_valid(acc[size_t(r * vectors + j)], ir.at(ir.at(to, ir.mul(ld, r)), j * lanes), j);
  }
};

} // namespace

std::string micro_kernel(Ir& ir, const Gemm& p, const MicroTile& tile) {
  std::string name = "micro_" + std::to_string(tile.rows) + "x" + std::to_string(tile.columns) +
                     (tile.ragged ? "_ragged" : "");
  llvm::SmallVector<mlir::Type> parameters = {ir.pointer, ir.pointer, ir.i64, ir.pointer, ir.i64, ir.pointer,
                                              ir.pointer, ir.pointer, ir.i64, ir.i64,     ir.i64};
  if (tile.sums_ld) parameters.push_back(ir.pointer);
  parameters.append(tile_operands(p).size(), ir.pointer);
  if (tile.ragged) parameters.push_back(ir.i64);
  if (tile.lines) parameters.push_back(ir.pointer);
  ir.function(name, parameters, true,
              [&](mlir::ValueRange arguments) { Emitter(ir, p, tile, arguments).emit(); });
  return name;
}

} // namespace deepgen
