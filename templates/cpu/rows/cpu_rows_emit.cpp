// The loops of cpu_rows: tiles of rows, blocks of columns, and what each sweep over a block or a row
// computes.
#include "base/text/error.h"
#include "templates/core/sizes.h"
#include "templates/cpu/cpu_values.h"
#include "templates/cpu/rows/cpu_rows.h"
#include "templates/cpu/rows/cpu_rows_math.h"
#include "templates/cpu/rows/row_sweep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>

namespace deepgen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::string> rows_args(const Rows& p) {
  std::vector<std::string> args = {"x", "ldx", "d", "ldd", "m0", "m1", "workspace"};
  if (p.residual) args.insert(args.end(), {"residual", "ld_residual"});
  if (p.output_residual) args.insert(args.end(), {"residual_out", "ld_residual_out"});
  if (p.scale) args.push_back("scale");
  if (p.bias) args.push_back("bias");
  if (p.quantised()) args.push_back("row_scales");
  if (p.normalises()) args.push_back("epsilon");
  return args;
}

/// One row of a tile: where it lies, and what sums of it are known.
struct RowState {
  Value index, x, residual, d, residual_out, scratch;
  Value next_x, next_residual; ///< of the same row of the next tile, where it is asked for ahead
  /// softmax: the maximum and the sum of exp(x - maximum). layer_norm: the mean, what its rounding lost, and
  /// the sum of squared deviations. rms_norm: the sum of squares.
  Value first, lost, second;
  Value shift;                 ///< what is taken from x: the maximum, the mean
  Value factor;                ///< what then multiplies it; of log_softmax: is taken from it
  Value correction;            ///< of layer_norm: what is then added, as the mean was rounded
  Value lift, quanta;          ///< of a quantised D: y * lift * quanta
  Value even_d, even_residual; ///< results of a pair's first half, which are stored with the second
};

class RowsNest {
public:
  RowsNest(Ir& builder, const Rows& problem, const RowsTiling& tiling)
      : ir(builder), p(problem), t(tiling), names(rows_args(problem)) {}

  void emit(Value block) {
    for (size_t i = 0; i < names.size(); ++i)
      args.push_back(loaded(names[i], ir.at_byte(block, 8 * int64_t(i))));
    Value last = ir.constant(t.tiles - 1);
    ir.loop(arg("m0"), arg("m1"), 1, [&](Value tile) {
      if (t.rest == t.rows || t.tiles == 1) return rows_of(tile, t.rest);
      ir.branch(ir.equal(tile, last), [&] { rows_of(tile, t.rest); }, [&] { rows_of(tile, t.rows); });
    });
    if (t.stream) finish_stores(ir);
  }

private:
  Ir& ir;
  const Rows& p;
  const RowsTiling& t;
  const std::vector<std::string> names;
  Values args; ///< of names, read once: stores to D might change them for all that LLVM knows
  std::vector<RowState> rows;

  Value arg(const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    if (size_t(at) == names.size()) throw Error("no argument slot '" + name + "'");
    return args[size_t(at)];
  }
  Value loaded(const std::string& name, Value address) {
    const bool is_integer = name.starts_with("ld") || name == "m0" || name == "m1";
    return ir.load(name == "epsilon" ? ir.element : is_integer ? ir.i64 : ir.pointer, address, 8);
  }

  bool single() const { return t.blocks == 1; }
  bool exponential() const { return !p.normalises(); }
  /// Exponentials stay in scratch, as no later block has a greater maximum.
  bool keeps_exponentials() const { return t.keep && single() && p.kind == RowsKind::softmax; }

  void rows_of(Value tile, int64_t count) {
    place(tile, count);
    sums_of_rows();
    finish_sums();
    if (p.quantised()) scale_rows();
    write_rows();
  }

  void place(Value tile, int64_t count) {
    rows.assign(size_t(count), {});
    const auto row_at = [&](const char* name, const char* ld, Type type, Value row) {
      return element_at(ir, type, arg(name), ir.mul(row, arg(ld)));
    };
    for (int64_t r = 0; r < count; ++r) {
      RowState& row = rows[size_t(r)];
      row.index = ir.add(ir.mul(tile, t.rows), r);
      row.x = row_at("x", "ldx", p.x, row.index);
      row.d = row_at("d", "ldd", p.d, row.index);
      if (p.residual) row.residual = row_at("residual", "ld_residual", p.x, row.index);
      if (p.output_residual) row.residual_out = row_at("residual_out", "ld_residual_out", p.x, row.index);
      if (t.keep)
        row.scratch = element_at(ir, Type::f32, arg("workspace"), ir.constant(r * t.scratch_columns));
      if (t.ahead) row.next_x = next_tile(row.x, "ldx");
      if (t.ahead && p.residual) row.next_residual = next_tile(row.residual, "ld_residual");
    }
  }
  /// Behind the last tile is nothing that is the caller's: so it is no address in bounds, and only asked for.
  Value next_tile(Value row, const char* ld) {
    Value distance = ir.mul(arg(ld), t.rows * size_of(p.x));
    return mlir::LLVM::GEPOp::create(ir.b, ir.loc, ir.pointer, ir.b.getI8Type(), row,
                                     mlir::ValueRange{distance});
  }
  /// Rows that come next, once a line.
  void ask_ahead(const RowState& row, const Place& at) {
    constexpr int64_t kLine = 64;
    if (!t.ahead || at.offset * size_of(p.x) % kLine) return;
    Value distance = ir.mul(at.column, size_of(p.x));
    for (Value base : {row.next_x, row.next_residual})
      if (base)
        ir.prefetch(mlir::LLVM::GEPOp::create(ir.b, ir.loc, ir.pointer, ir.b.getI8Type(), base,
                                              mlir::ValueRange{distance}),
                    false);
  }

  // Readings of a vector of a row.

  /// Of an operand that has X's type.
  Value load(Value base, const Place& at) {
    if (at.half) return load_half(ir, element_at(ir, p.x, base, at.pair), *at.half);
    return load_values(ir, p.x, element_at(ir, p.x, base, at.column), at.count);
  }
  /// The first half of a pair waits in `even` for the second.
  void store(Type type, Value x, Value base, const Place& at, bool aligned, Value& even) {
    if (!at.half)
      store_values(ir, type, x, element_at(ir, type, base, at.column), at.count, aligned);
    else if (*at.half == Half::even)
      even = x;
    else
      store_pair(ir, even, x, element_at(ir, type, base, at.pair), aligned);
  }
  Value fetch(const RowState& row, const Place& at) {
    Value x = load(row.x, at);
    return p.residual ? ir.addf(x, load(row.residual, at)) : x;
  }
  /// Scratch has room for whole vectors.
  Value scratch(const RowState& row, const Place& at) {
    return load_values(ir, Type::f32, element_at(ir, Type::f32, row.scratch, at.column), t.isa.lanes());
  }
  void keep(const RowState& row, Value x, const Place& at) {
    store_values(ir, Type::f32, x, element_at(ir, Type::f32, row.scratch, at.column), t.isa.lanes());
  }
  void write_residual(RowState& row, Value x, const Place& at) {
    if (p.output_residual) store(p.x, x, row.residual_out, at, false, row.even_residual);
  }
  Value read_first(RowState& row, const Place& at) {
    Value x = fetch(row, at);
    if (!t.keep) return x; // the residual, which its sum may replace, is read again
    keep(row, x, at);
    write_residual(row, x, at);
    return x;
  }
  Value read_again(const RowState& row, const Place& at) {
    return t.keep ? scratch(row, at) : fetch(row, at);
  }

  Reduction greatest() {
    return {ir.splat(-kInfinity), 1, false, [this](Value x, Value y) { return greater(ir, x, y); }};
  }
  Reduction total(size_t width = 1) {
    return {ir.splat(0.0), width, true, [this](Value x, Value y) { return ir.addf(x, y); }};
  }
  Values sweep(Value from, int64_t columns, const Reduction* reduction, const RowSweep::Step& step) {
    return RowSweep(ir, t, rows.size()).over(from, columns, reduction, step);
  }
  /// Of each row: a scalar.
  Values reduce(Value from, int64_t columns, const Reduction& reduction, const RowSweep::Step& step,
                int64_t each = 1) {
    Values out = RowSweep(ir, t, rows.size(), each).over(from, columns, &reduction, step);
    for (Value& x : out) x = combine_lanes(ir, x, reduction.combine);
    return out;
  }

  // Blocks. What is known of a row is carried from one to the next.

  void sums_of_rows() {
    for (RowState& row : rows) {
      row.first = ir.scalar(exponential() ? -kInfinity : 0);
      row.lost = row.second = ir.scalar(0);
    }
    Value zero = ir.constant(0);
    if (single()) return block_of_rows(zero, t.block);
    const auto state = [&] {
      Values all;
      for (const RowState& row : rows) all.append({row.first, row.lost, row.second});
      return all;
    };
    const auto resume = [&](mlir::ValueRange all) {
      for (size_t r = 0; r < rows.size(); ++r)
        rows[r].first = all[3 * r], rows[r].lost = all[3 * r + 1], rows[r].second = all[3 * r + 2];
    };
    const int64_t whole = p.n / t.block * t.block;
    resume(ir.loop(zero, ir.constant(whole), t.block, state(), [&](Value from, mlir::ValueRange carried) {
      resume(carried);
      block_of_rows(from, t.block);
      return state();
    }));
    if (whole < p.n) block_of_rows(ir.constant(whole), t.last);
  }

  void block_of_rows(Value from, int64_t columns) {
    if (exponential()) return block_of_exponentials(from, columns);
    if (p.kind == RowsKind::layer_norm) return block_of_deviations(from, columns);
    const Values squares = reduce(from, columns, total(), [&](const Place& at, auto sums) {
      for (size_t r = 0; r < rows.size(); ++r) {
        Value x = read_first(rows[r], at);
        sums[r] = ir.fma(x, x, sums[r]);
      }
    });
    for (size_t r = 0; r < rows.size(); ++r) rows[r].second = ir.addf(rows[r].second, squares[r]);
  }

  /// What is taken from x: the maximum; but 0 for -inf, from which -inf cannot be taken.
  Value shift_of(Value maximum) {
    Value none = mlir::arith::CmpFOp::create(ir.b, ir.loc, mlir::arith::CmpFPredicate::OEQ, maximum,
                                             ir.scalar(-kInfinity));
    return ir.select(none, ir.scalar(0), maximum);
  }

  void block_of_exponentials(Value from, int64_t columns) {
    const Values maxima = reduce(from, columns, greatest(), [&](const Place& at, auto sums) {
      for (size_t r = 0; r < rows.size(); ++r) {
        Value x = first_lanes(ir, read_first(rows[r], at), at.count, -kInfinity);
        sums[r] = greater(ir, sums[r], x);
      }
    });
    Values shifts;
    for (size_t r = 0; r < rows.size(); ++r) {
      RowState& row = rows[r];
      Value maximum = greater(ir, row.first, maxima[r]);
      row.shift = shift_of(maximum);
      if (!single()) row.second = ir.mulf(row.second, exp_of_negative(ir, ir.subf(row.first, row.shift)));
      row.first = maximum;
      shifts.push_back(ir.splat(row.shift));
    }
    const Values sums = reduce(from, columns, total(), [&](const Place& at, auto sums) {
      for (size_t r = 0; r < rows.size(); ++r) {
        Value e = exp_of_negative(ir, ir.subf(read_again(rows[r], at), shifts[r]));
        if (keeps_exponentials()) keep(rows[r], e, at);
        sums[r] = ir.addf(sums[r], first_lanes(ir, e, at.count, 0));
      }
    });
    for (size_t r = 0; r < rows.size(); ++r) rows[r].second = ir.addf(rows[r].second, sums[r]);
  }

  /// Deviations from the block's own mean, so that a great mean does not cancel. Their sum tells what the
  /// mean's rounding lost, or its sample: the mean of a share q of the columns is at most sqrt(1/q - 1)
  /// standard deviations from that of all, whatever they hold, so that squares about it sum up to at most
  /// 1/q times as much.
  void block_of_deviations(Value from, int64_t columns) {
    const int64_t sampled = t.sampled(columns);
    const auto add = [&](const Place& at, auto sums) {
      for (size_t r = 0; r < rows.size(); ++r) sums[r] = ir.addf(sums[r], read_first(rows[r], at));
    };
    Values means = reduce(from, columns, total(), add, sampled < columns ? t.sample_each : 1);
    Values centres;
    for (Value& mean : means) {
      mean = ir.divf(mean, ir.scalar(double(sampled)));
      centres.push_back(ir.splat(mean));
    }
    const Values sums = reduce(from, columns, total(2), [&](const Place& at, auto sums) {
      for (size_t r = 0; r < rows.size(); ++r) {
        Value x = first_lanes(ir, ir.subf(read_again(rows[r], at), centres[r]), at.count, 0);
        sums[2 * r] = ir.addf(sums[2 * r], x);
        sums[2 * r + 1] = ir.fma(x, x, sums[2 * r + 1]);
      }
    });
    for (size_t r = 0; r < rows.size(); ++r) {
      Value lost = ir.divf(sums[2 * r], ir.scalar(double(columns)));
      Value squares = ir.subf(sums[2 * r + 1], ir.mulf(lost, sums[2 * r]));
      join(rows[r], from, columns, means[r], lost, squares);
    }
  }

  /// Adds a block to those before it, after Chan, Golub and LeVeque ("Updating Formulae and a Pairwise
  /// Algorithm for Computing Sample Variances", 1979). The mean stays that of the first block; what differs
  /// from it is `lost`.
  void join(RowState& row, Value from, int64_t columns, Value mean, Value lost, Value squares) {
    if (single()) {
      row.first = mean, row.lost = lost, row.second = squares;
      return;
    }
    row.first = ir.select(ir.equal(from, ir.constant(0)), mean, row.first);
    Value before = mlir::arith::SIToFPOp::create(ir.b, ir.loc, ir.element, from);
    Value share = ir.divf(ir.scalar(double(columns)), ir.addf(before, ir.scalar(double(columns))));
    Value apart = ir.addf(ir.subf(mean, row.first), ir.subf(lost, row.lost));
    row.lost = ir.fma(apart, share, row.lost);
    Value between = ir.mulf(ir.mulf(apart, apart), ir.mulf(before, share));
    row.second = ir.addf(row.second, ir.addf(squares, between));
  }

  void finish_sums() {
    Value one = ir.scalar(1);
    for (RowState& row : rows) {
      if (p.kind == RowsKind::log_softmax) {
        row.shift = shift_of(row.first), row.factor = log_of_sum(ir, row.second);
      } else if (p.kind == RowsKind::softmax) {
        row.shift = shift_of(row.first), row.factor = ir.divf(one, row.second);
      } else {
        row.shift = ir.addf(row.first, row.lost);
        row.lost = ir.addf(ir.subf(row.first, row.shift), row.lost); // to its own rounding, or a deviation's
        Value mean_square = ir.divf(row.second, ir.scalar(double(p.n)));
        row.factor = ir.divf(one, square_root(ir, ir.addf(mean_square, arg("epsilon"))));
        row.correction = ir.mulf(ir.subf(ir.scalar(0), row.lost), row.factor);
      }
    }
  }

  // The result, from sums that are final.

  /// What D has before it is quantised and rounded, of all rows.
  Values results(const Place& at, bool last) {
    Value scale = p.scale ? load(arg("scale"), at) : Value();
    Value bias = p.bias ? load(arg("bias"), at) : Value();
    Values out;
    for (RowState& row : rows) {
      Value x = read_again(row, at);
      if (last && !t.keep) write_residual(row, x, at);
      Value factor = ir.splat(row.factor);
      if (p.kind == RowsKind::log_softmax)
        x = ir.subf(ir.subf(x, ir.splat(row.shift)), factor);
      else if (p.kind == RowsKind::softmax)
        x = ir.mulf(keeps_exponentials() ? x : exp_of_negative(ir, ir.subf(x, ir.splat(row.shift))), factor);
      else if (p.kind == RowsKind::layer_norm)
        x = ir.fma(ir.subf(x, ir.splat(row.shift)), factor, ir.splat(row.correction));
      else
        x = ir.mulf(x, factor);
      if (scale && bias)
        x = ir.fma(x, scale, bias);
      else if (scale)
        x = ir.mulf(x, scale);
      else if (bias)
        x = ir.addf(x, bias);
      out.push_back(x);
    }
    return out;
  }

  /// The greatest exponential is 1, but where there is none.
  Values greatest_of_softmax() {
    Values out;
    for (RowState& row : rows)
      out.push_back(ir.mulf(exp_of_negative(ir, ir.subf(row.first, row.shift)), row.factor));
    return out;
  }
  /// The greatest magnitude of each row's results, NaN where one is; they stay in scratch.
  Values greatest_results() {
    if (p.kind == RowsKind::softmax) return greatest_of_softmax();
    const Reduction magnitude = {magnitude_bits(ir, ir.splat(0.0)), 1, false,
                                 [this](Value x, Value y) { return greater_bits(ir, x, y); }};
    Values bits = sweep(ir.constant(0), p.n, &magnitude, [&](const Place& at, auto sums) {
      const Values all = results(at, false);
      for (size_t r = 0; r < rows.size(); ++r) {
        if (t.keep) keep(rows[r], all[r], at);
        sums[r] = greater_bits(ir, sums[r], magnitude_bits(ir, first_lanes(ir, all[r], at.count, 0)));
      }
    });
    for (Value& x : bits) x = from_bits(ir, combine_lanes(ir, x, magnitude.combine));
    return bits;
  }

  // y / scale as y * lift * (most / (greatest * lift)), where lift keeps the quotient finite.
  void scale_rows() {
    const Values greatest = greatest_results();
    Value most = ir.scalar(p.quantised_most()), zero = ir.scalar(0);
    for (size_t r = 0; r < rows.size(); ++r) {
      RowState& row = rows[r];
      ir.store_scalar(ir.divf(greatest[r], most), element_at(ir, Type::f32, arg("row_scales"), row.index));
      const auto compare = [&](mlir::arith::CmpFPredicate predicate, Value x) -> Value {
        return mlir::arith::CmpFOp::create(ir.b, ir.loc, predicate, greatest[r], x);
      };
      Value tiny = compare(mlir::arith::CmpFPredicate::OLT, ir.scalar(0x1p-64));
      row.lift = ir.select(tiny, ir.scalar(0x1p64), ir.scalar(1));
      Value quanta = ir.divf(most, ir.mulf(greatest[r], row.lift));
      row.quanta = ir.select(compare(mlir::arith::CmpFPredicate::OEQ, zero), zero, quanta);
    }
  }
  Value quantised(const RowState& row, Value y) {
    Value q = ir.mulf(ir.mulf(y, ir.splat(row.lift)), ir.splat(row.quanta));
    Value most = ir.splat(p.quantised_most()), least = ir.splat(-p.quantised_most());
    const auto compare = [&](mlir::arith::CmpFPredicate predicate, Value x) -> Value {
      return mlir::arith::CmpFOp::create(ir.b, ir.loc, predicate, q, x);
    };
    q = ir.select(compare(mlir::arith::CmpFPredicate::OGT, most), most, q); // a NaN passes
    return ir.select(compare(mlir::arith::CmpFPredicate::OLT, least), least, q);
  }

  void write_rows() {
    if (!t.stream) return write_rows(false);
    Value places = ir.constant(0);
    for (const RowState& row : rows) {
      Value address = mlir::LLVM::PtrToIntOp::create(ir.b, ir.loc, ir.i64, row.d);
      places = mlir::arith::OrIOp::create(ir.b, ir.loc, places, address);
    }
    Value unaligned = ir.remainder(places, t.paired ? pair_bytes(ir) : stored_bytes(ir, p.d));
    ir.branch(ir.equal(unaligned, ir.constant(0)), [&] { write_rows(true); }, [&] { write_rows(false); });
  }

  void write_rows(bool aligned) {
    const bool known = p.quantised() && t.keep && p.kind != RowsKind::softmax; // scratch has the results
    sweep(ir.constant(0), p.n, nullptr, [&](const Place& at, auto) {
      Values all;
      if (known)
        for (const RowState& row : rows) all.push_back(scratch(row, at));
      else
        all = results(at, true);
      for (size_t r = 0; r < rows.size(); ++r) {
        ask_ahead(rows[r], at);
        Value y = p.quantised() ? quantised(rows[r], all[r]) : all[r];
        store(p.d, y, rows[r].d, at, aligned, rows[r].even_d);
      }
    });
  }
};

} // namespace

Kernel CpuRows::emit(mlir::ModuleOp module, const Rows& p, const std::string&, const Config& config) const {
  const RowsTiling t(p, config);
  Ir ir(module, t.isa);
  ir.function(kernel_symbol, {ir.pointer}, false,
              [&](mlir::ValueRange parameters) { RowsNest(ir, p, t).emit(parameters[0]); });
  Kernel kernel;
  kernel.problem = p;
  kernel.choice = {name(), config};
  kernel.isa = t.isa.level;
  kernel.args = rows_args(p);
  kernel.tiles_m = t.tiles;
  kernel.workspace = size_of(Type::f32) * t.scratch_columns * t.rows;
  return kernel;
}

} // namespace deepgen
