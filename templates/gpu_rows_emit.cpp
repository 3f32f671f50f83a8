// The code of one block of gpu_rows: what each kind sums over a row, and what it makes of the sums.
#include "base/amd.h"
#include "templates/gpu_rows_source.h"

#include <cmath>
#include <memory>
#include <optional>

namespace deepgen {
namespace {

constexpr double kLog2E = 1.44269504088896340736, kLn2 = 0.69314718055994530942;

class GpuRowsBlock {
public:
  GpuRowsBlock(GpuIr& builder, const Rows& problem, const GpuRowsTiling& tiling,
               const GpuIr::Arguments& arguments)
      : ir(builder), p(problem), t(tiling), args(arguments), f32s_(ir.lanes(t.elements, ir.f32)) {}

  void emit();

private:
  using Combine = Value (GpuIr::*)(Value, Value);
  using Function = std::function<Value(Value)>;

  GpuRow row_of(Value set);
  void emit_set(Value set);
  // Over all elements of the row; every thread gets the result.
  Value reduce(Value of_thread, Combine);
  Value fold(Value lanes, Combine);
  Value within_warp(Value x, int64_t lanes, Combine);
  Value number(double x) { return ir.number(ir.f32, x); }
  Value guarded(const GpuRowsVector& at, Value x, double otherwise) {
    return at.inside ? ir.select(at.inside, x, ir.number(x.getType(), otherwise)) : x;
  }
  Value each(Value lanes, const Function& f);
  Value exponential(Value x, Value from);

  // A pass each; they leave behind what element() needs.
  void largest_and_sum();
  void running_largest_and_sum();
  void mean_and_deviation();
  void mean_of_squares();
  Value sum_of(const std::function<Value(GpuRowsVector&)>& term);

  Value element(const GpuRowsVector&);
  void quantise();
  void store();
  void store_residual(const GpuRowsVector& at) {
    if (p.output_residual) source_->store("residual_out", p.x, at, at.x);
  }
  /// The first pass over a row that stays with the threads is the one that stores X + residual: what it
  /// overwrites is not read again.
  bool kept() const { return t.hold != GpuRowsTiling::read_again; }
  bool in_registers() const { return t.hold == GpuRowsTiling::in_registers; }

  GpuIr& ir;
  const Rows& p;
  const GpuRowsTiling& t;
  const GpuIr::Arguments& args;
  mlir::Type f32s_;
  GpuRow row_;
  std::optional<GpuRowsSource> source_;
  int64_t reductions_ = 0; ///< of this set so far
  // An element is (x - shift) * factor, its exponential or without it, minus `rest`; those that the kind has.
  Value shift_, correction_, factor_, rest_;
  bool done_ = false;         ///< registers hold the elements of D, ahead of quantisation
  bool exponentials_ = false; ///< registers hold the exponentials
  bool centred_ = false;      ///< registers hold X - shift
  Value prescale_, inverse_;  ///< of quantisation
};

void GpuRowsBlock::emit() {
  if (t.blocks == t.all_sets) return emit_set(ir.to_i64(ir.block_x()));
  ir.rolled_loop(ir.to_i64(ir.block_x()), ir.constant(t.all_sets), t.blocks, [&](Value set) {
    emit_set(set);
    // With several reductions the barrier of the next one keeps their slots apart.
    if (t.crosses_warps() && t.reductions == 1) ir.barrier();
  });
}

GpuRow GpuRowsBlock::row_of(Value set) {
  GpuRow row;
  row.thread = ir.thread();
  row.lane = ir.bit_and(row.thread, t.lanes - 1);
  row.number = set;
  if (t.rows == 1) return row;
  Value in_set = ir.to_i64(ir.divide(row.thread, t.lanes));
  row.number = ir.add(ir.mul(set, t.rows), in_set);
  if (p.m % t.rows == 0) return row;
  row.inside = ir.less(row.number, p.m); // others repeat the last row and store nothing
  row.number = ir.min(row.number, ir.constant(p.m - 1));
  return row;
}

void GpuRowsBlock::emit_set(Value set) {
  row_ = row_of(set);
  source_.emplace(ir, p, t, args, row_);
  reductions_ = 0;
  done_ = exponentials_ = centred_ = false;
  switch (p.kind) {
  case RowsKind::softmax:
  case RowsKind::log_softmax:
    in_registers() ? largest_and_sum() : running_largest_and_sum();
    break;
  case RowsKind::layer_norm:
    mean_and_deviation();
    break;
  case RowsKind::rms_norm:
    mean_of_squares();
    break;
  }
  if (p.quantised()) quantise();
  store();
}

Value GpuRowsBlock::fold(Value lanes, Combine combine) {
  Values all = ir.unpack(lanes);
  while (all.size() > 1) {
    Values next;
    for (size_t i = 0; i + 1 < all.size(); i += 2) next.push_back((ir.*combine)(all[i], all[i + 1]));
    if (all.size() % 2) next.push_back(all.back());
    all = next;
  }
  return all[0];
}

Value GpuRowsBlock::within_warp(Value x, int64_t lanes, Combine combine) {
  for (int64_t mask = lanes / 2; mask > 0; mask /= 2) x = (ir.*combine)(x, ir.shuffle_xor(x, mask));
  return x;
}

Value GpuRowsBlock::reduce(Value of_thread, Combine combine) {
  Value x = within_warp(fold(of_thread, combine), std::min<int64_t>(32, t.lanes), combine);
  if (!t.crosses_warps()) return x;
  Value partials = ir.offset(ir.shared_memory(), reductions_++ * t.threads / 32 * 4);
  Value warp = ir.shift_right_bits(row_.thread, 5), lane = ir.lane();
  ir.branch(ir.equal(lane, ir.c(0)), [&] { ir.store(x, ir.offset(partials, ir.mul(warp, 4)), 4); });
  ir.barrier();
  Value first = ir.bit_and(warp, ~(t.warps - 1)); // of the row's
  Value other = ir.add(first, ir.bit_and(lane, t.warps - 1));
  x = ir.load(x.getType(), ir.offset(partials, ir.mul(other, 4)), 4);
  return within_warp(x, t.warps, combine);
}

Value GpuRowsBlock::each(Value lanes, const Function& f) {
  Values out;
  for (Value x : ir.unpack(lanes)) out.push_back(f(x));
  return ir.pack(out);
}

/// exp(x - from). The product's rounding makes an error of |x - from| / 2 units in the last place, as large
/// as what a rounding of x makes.
Value GpuRowsBlock::exponential(Value x, Value from) {
  Value power = ir.mulf(ir.subf(x, ir.broadcast_like(from, x)), ir.number(x.getType(), kLog2E));
  return each(power, [&](Value one) { return ir.exp2_fast(one); });
}

Value GpuRowsBlock::sum_of(const std::function<Value(GpuRowsVector&)>& term) {
  const Values sums = source_->pass({ir.number(f32s_, 0)}, [&](GpuRowsVector& at, mlir::ValueRange sum) {
    return Values{ir.addf(sum[0], guarded(at, term(at), 0))};
  });
  return reduce(sums[0], &GpuIr::addf);
}

void GpuRowsBlock::largest_and_sum() {
  const Values most =
      source_->pass({ir.number(f32s_, -INFINITY)}, [&](GpuRowsVector& at, mlir::ValueRange most) {
        store_residual(at);
        return Values{ir.larger(most[0], guarded(at, at.x, -INFINITY))};
      });
  shift_ = reduce(most[0], &GpuIr::larger);
  exponentials_ = p.kind == RowsKind::softmax;
  Value sum = sum_of([&](GpuRowsVector& at) {
    Value power = exponential(at.x, shift_);
    if (exponentials_) at.x = power;
    return power;
  });
  factor_ = ir.divf(number(1), sum);
  rest_ = ir.mulf(ir.log2_fast(sum), number(kLn2));
}

/// In one pass: the sum so far is of exp(x - largest so far). While that is -inf, 0 stands for it: the sum is
/// 0 then, and stays so for a row of -inf alone.
void GpuRowsBlock::running_largest_and_sum() {
  const auto base_of = [&](Value largest) {
    Value none = ir.equal(ir.bitcast(ir.i32, largest), ir.c(int64_t(int32_t(0xff800000))));
    return ir.select(none, number(0), largest);
  };
  const auto visit = [&](GpuRowsVector& at, mlir::ValueRange now) {
    if (kept()) store_residual(at);
    Value x = guarded(at, at.x, -INFINITY);
    Value largest = ir.larger(now[0], fold(x, &GpuIr::larger)), base = base_of(largest);
    Value before = ir.mulf(now[1], exponential(now[0], base));
    return Values{largest, ir.addf(before, fold(exponential(x, base), &GpuIr::addf))};
  };
  const Values own = source_->pass({number(-INFINITY), number(0)}, visit);
  shift_ = reduce(own[0], &GpuIr::larger);
  Value part = ir.mulf(own[1], exponential(own[0], base_of(shift_)));
  Value sum = reduce(part, &GpuIr::addf);
  factor_ = ir.divf(number(1), sum);
  rest_ = ir.mulf(ir.log2_fast(sum), number(kLn2));
}

/// The second pass also sums X - mean, which should be 0: the mean's own rounding, to which a mean far from 0
/// adds more than the deviations are.
void GpuRowsBlock::mean_and_deviation() {
  Value share = number(1.0 / double(p.n));
  Value sum = sum_of([&](GpuRowsVector& at) {
    if (kept()) store_residual(at);
    return at.x;
  });
  shift_ = ir.mulf(sum, share);
  centred_ = in_registers();
  const auto visit = [&](GpuRowsVector& at, mlir::ValueRange now) {
    Value centred = ir.subf(at.x, ir.broadcast_like(shift_, at.x));
    if (in_registers()) at.x = centred;
    centred = guarded(at, centred, 0);
    return Values{ir.addf(now[0], centred), ir.multiply_add(centred, centred, now[1])};
  };
  const Values sums = source_->pass({ir.number(f32s_, 0), ir.number(f32s_, 0)}, visit);
  const Combine add = &GpuIr::addf;
  correction_ = ir.mulf(reduce(sums[0], add), share);
  Value squares = ir.mulf(reduce(sums[1], add), share);
  // Of a constant row it may round to below 0.
  Value variance = ir.maximum(ir.subf(squares, ir.mulf(correction_, correction_)), number(0));
  factor_ = ir.divf(number(1), ir.square_root(ir.addf(variance, args.at("epsilon"))));
}

void GpuRowsBlock::mean_of_squares() {
  Value sum = sum_of([&](GpuRowsVector& at) {
    if (kept()) store_residual(at);
    return ir.mulf(at.x, at.x);
  });
  Value mean = ir.mulf(sum, number(1.0 / double(p.n)));
  factor_ = ir.divf(number(1), ir.square_root(ir.addf(mean, args.at("epsilon"))));
}

Value GpuRowsBlock::element(const GpuRowsVector& at) {
  Value x = at.x;
  if (done_) return x;
  const auto like = [&](Value scalar) { return ir.broadcast_like(scalar, x); };
  switch (p.kind) {
  case RowsKind::softmax:
    return ir.mulf(exponentials_ ? x : exponential(x, shift_), like(factor_));
  case RowsKind::log_softmax:
    return ir.subf(ir.subf(x, like(shift_)), like(rest_));
  case RowsKind::layer_norm:
    x = ir.subf(centred_ ? x : ir.subf(x, like(shift_)), like(correction_));
    break;
  case RowsKind::rms_norm:
    break;
  }
  x = ir.mulf(x, like(factor_));
  if (p.scale) x = ir.mulf(x, source_->vector_of("scale", at));
  return p.bias ? ir.addf(x, source_->vector_of("bias", at)) : x;
}

/// Bits of numbers without sign have the order of the numbers, and NaN behind infinity.
void GpuRowsBlock::quantise() {
  constexpr int64_t kTiny = int64_t(127 - 100) << 23; // bits of 2^-100
  mlir::Type bits = ir.lanes(t.elements, ir.i32);
  Value mask = ir.pack(Values(size_t(t.elements), ir.c(0x7fffffff)));
  const Values most = source_->pass({ir.zero(bits)}, [&](GpuRowsVector& at, mlir::ValueRange now) {
    Value y = element(at);
    if (in_registers()) at.x = y;
    Value magnitude = ir.bit_and(ir.bitcast(bits, y), mask);
    if (at.inside) magnitude = ir.select(at.inside, magnitude, ir.zero(bits));
    return Values{ir.max(now[0], magnitude)};
  });
  done_ = in_registers();
  Value largest = reduce(most[0], &GpuIr::max), value = ir.bitcast(ir.f32, largest);
  // Of tiny rows the quotient of `most` and the largest would be infinite: both are taken times 2^100.
  prescale_ = ir.select(ir.less(largest, kTiny), number(0x1p100), number(1));
  inverse_ = ir.divf(number(p.quantised_most()), ir.mulf(value, prescale_));
  inverse_ = ir.select(ir.equal(largest, ir.c(0)), number(0), inverse_);
  Value first = ir.equal(row_.lane, ir.c(0));
  ir.branch(row_.inside ? ir.both(first, row_.inside) : first, [&] {
    Value scale = ir.divf(value, number(p.quantised_most()));
    ir.store(scale, ir.offset(args.at("row_scales"), ir.mul(row_.number, 4)), 4);
  });
}

void GpuRowsBlock::store() {
  source_->pass({}, [&](GpuRowsVector& at, mlir::ValueRange) {
    if (!kept()) store_residual(at);
    Value y = element(at);
    if (p.quantised())
      y = ir.mulf(ir.mulf(y, ir.broadcast_like(prescale_, y)), ir.broadcast_like(inverse_, y));
    source_->store("d", p.d, at, y);
    return Values();
  });
}

} // namespace

Kernel GpuRows::emit(mlir::ModuleOp module, const Rows& p, const std::string& arch,
                     const Config& config) const {
  const GpuRowsTiling t(p, config);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = gpu_target(arch);
  kernel.args = gpu_arguments(p);
  kernel.align_a = t.vec, kernel.align_b = t.vec;
  kernel.align_d = t.store_bytes(p);
  const std::unique_ptr<GpuIr> ir = make_gpu_ir(module, kernel.target);
  GpuEntry entry;
  entry.name = kernel_symbol, entry.threads = t.threads, entry.shared = t.shared_bytes();
  ir->kernel(entry, p, kernel.args,
             [&](const GpuIr::Arguments& args) { GpuRowsBlock(*ir, p, t, args).emit(); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {t.blocks, 1, 1};
  launch.block = {t.threads, 1, 1};
  if (!is_amd(arch)) launch.shared = t.shared_bytes(); // AMD's is static
  kernel.launches.push_back(launch);
  return kernel;
}

} // namespace deepgen
