// The code of one block of gpu_rows: what each kind sums over a row, and what it makes of the sums.
#include "base/kernel/amd.h"
#include "templates/gpu/rows/gpu_rows_threads.h"

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
  using Combine = GpuRowsThreads::Combine;
  using Function = std::function<Value(Value)>;
  /// A vector's terms joined with those of the vectors ahead of it in its block: null where it is the first.
  using Terms = std::function<Values(GpuRowsVector&, const Values& block)>;

  GpuRow row_of(Value set);
  void emit_set(Value set, Value slots, mlir::ValueRange fetched = {});
  void emit_ahead();
  Values fetch(Value set) { return GpuRowsSource(ir, p, t, args, row_of(set)).fetch(); }
  Value number(double x) { return ir.number(ir.f32, x); }
  Value guarded(const GpuRowsVector& at, Value x, double otherwise) {
    return at.inside ? ir.select(at.inside, x, ir.number(x.getType(), otherwise)) : x;
  }
  Value each(Value lanes, const Function& f);
  Value exponential(Value x, Value from);
  Value base_of(Value largest);
  Value magnitude(const GpuRowsVector&, Value, Value most);

  // A pass each; they leave behind what element() needs.
  void largest_and_sum();
  void running_largest_and_sum();
  void join_exponentials(Value largest, Value sum);
  void mean_and_deviation();
  Value join_deviations(Value sum, Value squares);
  void mean_of_squares();
  Values total(const std::vector<Combine>&, const Values& start, const Terms&);
  Value plus(Value x, Value sum) { return sum ? ir.addf(x, sum) : x; }
  Value square_plus(Value x, Value sum) { return sum ? ir.multiply_add(x, x, sum) : ir.mulf(x, x); }
  Value larger(Value x, Value most) { return most ? ir.larger(most, x) : x; }
  Value warp_elements(Value warp);

  Value element(const GpuRowsVector&);
  Value scaled(Value, const GpuRowsVector&);
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
  std::optional<GpuRowsThreads> threads_;
  // An element is (x - shift) * factor + offset, its exponential or without it, minus `rest`; those that the
  // kind has.
  Value shift_, correction_, factor_, offset_, rest_;
  Value largest_;             ///< |element| of the row, where no pass of its own is needed
  bool done_ = false;         ///< registers hold the elements of D, ahead of quantisation
  bool exponentials_ = false; ///< registers hold the exponentials
  bool centred_ = false;      ///< registers hold X - shift
  bool scaled_ = false;       ///< registers hold X * scale
  bool prescaled_ = false;    ///< the factor has the prescale
  Value prescale_, inverse_;  ///< of quantisation
};

/// Where a set has one barrier alone, the next one has other slots: a warp is ahead of another by one barrier
/// at most.
void GpuRowsBlock::emit() {
  if (t.blocks == t.all_sets) return emit_set(ir.to_i64(ir.block_x()), ir.c(0));
  if (t.ahead()) return emit_ahead();
  const int64_t other = t.alternates() ? t.slot_bytes() : 0;
  ir.rolled_loop(ir.to_i64(ir.block_x()), ir.constant(t.all_sets), t.blocks, {ir.c(0)},
                 [&](Value set, mlir::ValueRange slots) {
                   emit_set(set, slots[0]);
                   return Values{ir.sub(ir.c(other), slots[0])};
                 });
}

/// The same, with the loads of the next set under way while one is computed. Behind the last one its own are
/// read again, which are still in L2.
void GpuRowsBlock::emit_ahead() {
  const int64_t other = t.alternates() ? t.slot_bytes() : 0;
  Value first = ir.to_i64(ir.block_x());
  Values start = {ir.c(0)};
  for (Value load : fetch(first)) start.push_back(load);
  ir.rolled_loop(first, ir.constant(t.all_sets), t.blocks, start, [&](Value set, mlir::ValueRange now) {
    Value next = ir.add(set, t.blocks);
    const Values loads = fetch(ir.select(ir.less(next, t.all_sets), next, set));
    emit_set(set, now[0], now.drop_front());
    Values carried = {ir.sub(ir.c(other), now[0])};
    carried.insert(carried.end(), loads.begin(), loads.end());
    return carried;
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

void GpuRowsBlock::emit_set(Value set, Value slots, mlir::ValueRange fetched) {
  row_ = row_of(set);
  source_.emplace(ir, p, t, args, row_);
  source_->fetched(fetched);
  threads_.emplace(ir, t, row_, slots);
  largest_ = nullptr;
  done_ = exponentials_ = centred_ = scaled_ = prescaled_ = false;
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

/// While the largest so far is -inf, 0 stands for it: all exponentials are 0 then.
Value GpuRowsBlock::base_of(Value largest) {
  Value none = ir.equal(ir.bitcast(ir.i32, largest), ir.c(int64_t(int32_t(0xff800000))));
  return ir.select(none, number(0), largest);
}

/// Bits of numbers without sign have the order of the numbers, and NaN behind infinity.
Value GpuRowsBlock::magnitude(const GpuRowsVector& at, Value x, Value most) {
  mlir::Type bits = ir.lanes(t.elements, ir.i32);
  Value mask = ir.pack(Values(size_t(t.elements), ir.c(0x7fffffff)));
  Value plain = ir.bit_and(ir.bitcast(bits, x), mask);
  if (at.inside) plain = ir.select(at.inside, plain, ir.zero(bits));
  return most ? ir.max(most, plain) : plain;
}

/// Over this thread's vectors, per element of a vector: in blocks of vectors that are read together, so that
/// no chain of additions is long (GpuRowsTiling::additions()).
Values GpuRowsBlock::total(const std::vector<Combine>& combine, const Values& start, const Terms& terms) {
  const auto join = [&](const Values& x, const Values& y) {
    Values out;
    for (size_t i = 0; i < combine.size(); ++i) out.push_back((ir.*combine[i])(x[i], y[i]));
    return out;
  };
  return source_->pass(start, [&](std::vector<GpuRowsVector>& group, mlir::ValueRange carried) {
    const bool first = carried[0] == start[0]; // and there is no other group
    Values sum, block;
    for (size_t i = 0; i < group.size(); ++i) {
      const bool begins = i % GpuRowsTiling::block_additions == 0;
      block = terms(group[i], begins ? Values(combine.size(), nullptr) : block);
      if ((i + 1) % GpuRowsTiling::block_additions && i + 1 < group.size()) continue;
      sum = !sum.empty() ? join(sum, block) : first ? block : join(Values(carried), block);
    }
    return sum;
  });
}

/// Of the exponentials so far, which are relative to this thread's warp's largest: those of the row.
void GpuRowsBlock::join_exponentials(Value largest, Value sum) {
  Value own = largest;
  if (t.crosses_warps()) {
    const Values of = threads_->of_warps({largest, sum});
    largest = threads_->over_warps(of[0], &GpuIr::larger);
    sum = threads_->over_warps(ir.mulf(of[1], exponential(of[0], base_of(largest))), &GpuIr::addf);
  }
  Value inverse = ir.divf(number(1), sum);
  shift_ = largest, factor_ = inverse;
  if (exponentials_ && t.crosses_warps()) factor_ = ir.mulf(exponential(own, base_of(largest)), inverse);
  // The largest element's exponential is 1, or that of a row without one NaN.
  if (p.kind == RowsKind::softmax) largest_ = ir.mulf(exponential(largest, largest), inverse);
  if (p.kind == RowsKind::log_softmax) rest_ = ir.mulf(ir.log2_fast(sum), number(kLn2));
}

void GpuRowsBlock::largest_and_sum() {
  const Values most =
      total({&GpuIr::larger}, {ir.number(f32s_, -INFINITY)}, [&](GpuRowsVector& at, const Values& block) {
        store_residual(at);
        return Values{larger(guarded(at, at.x, -INFINITY), block[0])};
      });
  Value largest = threads_->in_warp(most[0], &GpuIr::larger), base = base_of(largest);
  exponentials_ = p.kind == RowsKind::softmax;
  const Values sums =
      total({&GpuIr::addf}, {ir.number(f32s_, 0)}, [&](GpuRowsVector& at, const Values& block) {
        Value power = exponential(at.x, base);
        if (exponentials_) at.x = power;
        return Values{plus(guarded(at, power, 0), block[0])};
      });
  join_exponentials(largest, threads_->in_warp(sums[0], &GpuIr::addf));
}

/// In one pass: the sum so far is of exp(x - largest so far).
void GpuRowsBlock::running_largest_and_sum() {
  const auto visit = [&](std::vector<GpuRowsVector>& group, mlir::ValueRange now) {
    Value largest = now[0], more;
    for (GpuRowsVector& at : group) {
      if (kept()) store_residual(at);
      largest = ir.larger(largest, threads_->fold(guarded(at, at.x, -INFINITY), &GpuIr::larger));
    }
    Value base = base_of(largest);
    for (GpuRowsVector& at : group) {
      Value power = guarded(at, exponential(at.x, base), 0);
      more = more ? ir.addf(more, power) : power;
    }
    Value before = ir.mulf(now[1], exponential(now[0], base));
    return Values{largest, ir.addf(before, threads_->fold(more, &GpuIr::addf))};
  };
  const Values own = source_->pass({number(-INFINITY), number(0)}, visit);
  Value largest = threads_->in_warp(own[0], &GpuIr::larger);
  Value part = ir.mulf(own[1], exponential(own[0], base_of(largest)));
  join_exponentials(largest, threads_->in_warp(part, &GpuIr::addf));
}

/// Elements of the row that a warp has, in f32: the last turn may have vectors for the first ones alone.
Value GpuRowsBlock::warp_elements(Value warp) {
  const int64_t whole = t.vectors / t.lanes * 32, rest = t.vectors % t.lanes;
  if (!rest) return number(double(whole * t.elements));
  Value left = ir.sub(ir.c(rest), ir.mul(warp, 32));
  left = ir.min(ir.max(left, ir.c(0)), ir.c(32));
  return ir.convert(ir.f32, ir.mul(ir.add(left, whole), t.elements));
}

/// The first pass makes a mean of this warp's elements alone, and no other warp waits for it. The second pass
/// also sums X - mean, which should be 0: the mean's own rounding, to which a mean far from 0 adds more than
/// the deviations are.
void GpuRowsBlock::mean_and_deviation() {
  const Combine add = &GpuIr::addf;
  const Values sum = total({add}, {ir.number(f32s_, 0)}, [&](GpuRowsVector& at, const Values& block) {
    if (kept()) store_residual(at);
    return Values{plus(guarded(at, at.x, 0), block[0])};
  });
  Value all = threads_->in_warp(sum[0], add);
  if (t.crosses_warps() && t.vectors % t.lanes) // a warp may have nothing, and then any mean will do
    shift_ =
        ir.divf(all, ir.maximum(warp_elements(ir.bit_and(ir.shift_right_bits(row_.thread, 5), t.warps - 1)),
                                number(1)));
  else
    shift_ = ir.mulf(all, number(double(t.warps) / double(p.n)));
  centred_ = in_registers();
  const Values sums = total({add, add}, {ir.number(f32s_, 0), ir.number(f32s_, 0)},
                            [&](GpuRowsVector& at, const Values& block) {
                              Value centred = ir.subf(at.x, ir.broadcast_like(shift_, at.x));
                              if (in_registers()) at.x = centred;
                              centred = guarded(at, centred, 0);
                              return Values{plus(centred, block[0]), square_plus(centred, block[1])};
                            });
  Value variance = join_deviations(threads_->in_warp(sums[0], add), threads_->in_warp(sums[1], add));
  // Of a constant row it may round to below 0.
  variance = ir.maximum(variance, number(0));
  factor_ = ir.divf(number(1), ir.square_root(ir.addf(variance, args.at("epsilon"))));
  // (X - shift - correction) * factor, where the correction may be as large as deviations are.
  offset_ = ir.mulf(ir.subf(number(0), correction_), factor_);
}

/// From the sums of x - shift and of its square over this warp: the correction of the shift, and the row's
/// variance, as Chan, Golub and LeVeque join partial ones (Algorithms for computing the sample variance,
/// 1983). Of warp i with n elements, shifted by s, the sums are c and q; relative to the first warp's shift
/// the row's mean is the sum of n (s - s0) + c over N, and, e being that less s - s0, the squares about it
/// are q - 2 e c + n e^2. All terms are as small as the row's deviations are.
Value GpuRowsBlock::join_deviations(Value sum, Value squares) {
  Value share = number(1.0 / double(p.n));
  if (!t.crosses_warps()) {
    correction_ = ir.mulf(sum, share);
    return ir.subf(ir.mulf(squares, share), ir.mulf(correction_, correction_));
  }
  const Values of = threads_->of_warps({shift_, sum, squares});
  Value count = warp_elements(threads_->other_warp());
  Value origin = threads_->of_first_warp(0), shifted = ir.subf(of[0], origin);
  Value mean = ir.mulf(threads_->over_warps(ir.multiply_add(count, shifted, of[1]), &GpuIr::addf), share);
  correction_ = ir.subf(mean, ir.subf(shift_, origin));
  Value off = ir.subf(mean, shifted);
  Value twice = ir.addf(of[1], of[1]);
  Value about = ir.multiply_add(off, ir.subf(ir.mulf(count, off), twice), of[2]);
  return ir.mulf(threads_->over_warps(about, &GpuIr::addf), share);
}

/// Without a bias the largest |element| is the largest |X * scale| times the factor, however both round: a
/// rounding keeps the order. So it comes with the squares.
void GpuRowsBlock::mean_of_squares() {
  const bool with_largest = t.largest_with_sum;
  scaled_ = with_largest && p.scale && in_registers();
  std::vector<Combine> combine = {&GpuIr::addf};
  Values start = {ir.number(f32s_, 0)};
  if (with_largest) combine.push_back(&GpuIr::max), start.push_back(ir.zero(ir.lanes(t.elements, ir.i32)));
  const Values own = total(combine, start, [&](GpuRowsVector& at, const Values& block) {
    if (kept()) store_residual(at);
    Values terms = {square_plus(guarded(at, at.x, 0), block[0])};
    if (!with_largest) return terms;
    Value x = p.scale ? ir.mulf(at.x, source_->vector_of("scale", at)) : at.x;
    if (scaled_) at.x = x;
    terms.push_back(magnitude(at, x, block[1]));
    return terms;
  });
  Value sum = threads_->in_warp(own[0], combine[0]), most;
  if (with_largest) most = threads_->in_warp(own[1], combine[1]);
  if (t.crosses_warps()) {
    const Values of = threads_->of_warps(with_largest ? Values{sum, most} : Values{sum});
    sum = threads_->over_warps(of[0], combine[0]);
    if (with_largest) most = threads_->over_warps(of[1], combine[1]);
  }
  Value mean = ir.mulf(sum, number(1.0 / double(p.n)));
  factor_ = ir.divf(number(1), ir.square_root(ir.addf(mean, args.at("epsilon"))));
  if (with_largest) largest_ = ir.mulf(ir.bitcast(ir.f32, most), factor_);
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
    x = centred_ ? x : ir.subf(x, like(shift_));
    return scaled(ir.multiply_add(x, like(factor_), like(offset_)), at);
  case RowsKind::rms_norm:
    if (!t.largest_with_sum) break;
    if (p.scale && !scaled_) x = ir.mulf(x, source_->vector_of("scale", at));
    return ir.mulf(x, like(factor_));
  }
  return scaled(ir.mulf(x, like(factor_)), at);
}

Value GpuRowsBlock::scaled(Value x, const GpuRowsVector& at) {
  if (!p.scale) return p.bias ? ir.addf(x, source_->vector_of("bias", at)) : x;
  Value scale = source_->vector_of("scale", at);
  return p.bias ? ir.multiply_add(x, scale, source_->vector_of("bias", at)) : ir.mulf(x, scale);
}

void GpuRowsBlock::quantise() {
  constexpr int64_t kTiny = int64_t(127 - 100) << 23; // bits of 2^-100
  if (!largest_) {
    const Values start = {ir.zero(ir.lanes(t.elements, ir.i32))};
    const Values most = total({&GpuIr::max}, start, [&](GpuRowsVector& at, const Values& block) {
      Value y = element(at);
      if (in_registers()) at.x = y;
      return Values{magnitude(at, y, block[0])};
    });
    done_ = in_registers();
    largest_ = ir.bitcast(ir.f32, threads_->in_row(most[0], &GpuIr::max));
  }
  Value bits = ir.bitcast(ir.i32, largest_);
  // Of tiny rows the quotient of `most` and the largest would be infinite: both are taken times 2^64,
  // which the factor of any epsilon but a subnormal one can take too.
  prescale_ = ir.select(ir.less(bits, kTiny), number(0x1p64), number(1));
  inverse_ = ir.divf(number(p.quantised_most()), ir.mulf(largest_, prescale_));
  inverse_ = ir.select(ir.equal(bits, ir.c(0)), number(0), inverse_);
  // Where elements are a product with the factor alone, the power of two goes into it.
  prescaled_ = t.largest_with_sum;
  if (prescaled_) factor_ = ir.mulf(factor_, prescale_);
  Value first = ir.equal(row_.lane, ir.c(0));
  ir.branch(row_.inside ? ir.both(first, row_.inside) : first, [&] {
    Value scale = ir.divf(largest_, number(p.quantised_most()));
    ir.store(scale, ir.offset(args.at("row_scales"), ir.mul(row_.number, 4)), 4);
  });
}

void GpuRowsBlock::store() {
  source_->pass({}, [&](std::vector<GpuRowsVector>& group, mlir::ValueRange) {
    for (GpuRowsVector& at : group) {
      if (!kept()) store_residual(at);
      Value y = element(at);
      if (p.quantised() && !prescaled_) y = ir.mulf(y, ir.broadcast_like(prescale_, y));
      if (p.quantised()) y = ir.mulf(y, ir.broadcast_like(inverse_, y));
      source_->store("d", p.d, at, y);
    }
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
  entry.min_blocks = std::max<int64_t>(1, t.resident);
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
