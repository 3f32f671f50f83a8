#include "templates/epilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deepgen {
namespace {

namespace arith = mlir::arith;

Value select_if(Ir& ir, arith::CmpFPredicate predicate, Value x, Value y, Value yes, Value no) {
  return ir.select(arith::CmpFOp::create(ir.b, ir.loc, predicate, x, y), yes, no);
}

/// Ordered comparisons are false for NaN, so a NaN in x passes through both.
Value at_most(Ir& ir, Value x, double bound) {
  return select_if(ir, arith::CmpFPredicate::OGT, x, ir.splat(bound), ir.splat(bound), x);
}
Value at_least(Ir& ir, Value x, double bound) {
  return select_if(ir, arith::CmpFPredicate::OLT, x, ir.splat(bound), ir.splat(bound), x);
}

Value polynomial(Ir& ir, Value t, llvm::ArrayRef<double> ascending) {
  Value sum = ir.splat(ascending.back());
  for (double c : llvm::reverse(ascending.drop_back())) sum = ir.fma(sum, t, ir.splat(c));
  return sum;
}

/// erfc(z) exp(z^2) for z >= 0, as a polynomial in t = (z - c) / (z + c): truncated Chebyshev series,
/// computed with 70 digits by scripts/fit_erfc.py. Largest relative error, evaluated in the type
/// itself: 2.1e-7 and 9.8e-16.
constexpr double kErfcCentre32 = 3, kErfcCentre64 = 4;
constexpr double kErfc32[] = {0.17900115365185434,    -0.32623364583192993,  0.2456036216271468,
                              -0.15011418584856487,   0.07166797533270303,   -0.02440260496936182,
                              0.004259766871257394,   0.0007320455403284751, -0.0005781560561591779,
                              1.8398235500739622e-05, 4.564088760267887e-05};
constexpr double kErfc64[] = {
    0.13699945762506138,     -0.25906804876017253,    0.2187196789182644,      -0.16425781669723072,
    0.10896317739892815,     -0.06310781564179457,    0.031299056518247596,    -0.012843946006388787,
    0.0040602636283182825,   -0.0007991269820253035,  -2.1761748035718732e-05, 7.898387349464188e-05,
    -2.2555929261440034e-05, -1.9050222714817373e-06, 2.9442671004526366e-06,  -4.056635568059823e-07,
    -2.83616680306096e-07,   9.286877001125978e-08,   2.484346620100743e-08,   -1.304361065835857e-08,
    -2.02554257660657e-09,   1.0747862261442003e-09,  1.2013356305627165e-10};

} // namespace

bool is_cheap(const std::vector<EpilogueOp>& ops) {
  return std::none_of(ops.begin(), ops.end(),
                      [](EpilogueOp op) { return op == EpilogueOp::gelu || op == EpilogueOp::silu; });
}

Value relu(Ir& ir, Value x) { return at_least(ir, x, 0.0); }

// Cody and Waite: exp(x) = 2^n exp(r), r = x - n ln 2 in two steps, |r| <= ln(2)/2, Taylor polynomial. n is
// rounded by adding 1.5 * 2^mantissa bits, which leaves it in the low bits of the sum on every level, SSE2
// too.
Value exp(Ir& ir, Value x) {
  const bool single = ir.isa.element == Type::f32;
  const double lowest = single ? -87.33 : -708.39, highest = single ? 88.0 : 709.0;
  const double magic = single ? 12582912.0 : 6755399441055744.0;
  const double ln2_high = single ? 0.693145751953125 : 6.93147180369123816490e-01;
  const double ln2_low = single ? 1.428606765330187e-06 : 1.90821492927058770002e-10;
  const int64_t mantissa = single ? 23 : 52, degree = single ? 7 : 13;

  Value clamped = at_most(ir, at_least(ir, x, lowest), highest);
  Value shifted = ir.fma(clamped, ir.splat(1.44269504088896340736), ir.splat(magic));
  Value n = ir.subf(shifted, ir.splat(magic));
  Value r = ir.fma(n, ir.splat(-ln2_high), clamped);
  r = ir.fma(n, ir.splat(-ln2_low), r);
  llvm::SmallVector<double> taylor = {1.0};
  for (int64_t i = 1; i <= degree; ++i) taylor.push_back(taylor.back() / double(i));
  Value p = polynomial(ir, r, taylor);

  auto lane = single ? ir.b.getI32Type() : ir.b.getI64Type();
  auto bits = mlir::VectorType::get({ir.isa.lanes()}, lane);
  Value shift = arith::ConstantOp::create(
      ir.b, ir.loc, mlir::DenseElementsAttr::get(bits, ir.b.getIntegerAttr(lane, mantissa)));
  Value exponent =
      arith::ShLIOp::create(ir.b, ir.loc, arith::BitcastOp::create(ir.b, ir.loc, bits, shifted), shift);
  Value scaled =
      arith::AddIOp::create(ir.b, ir.loc, arith::BitcastOp::create(ir.b, ir.loc, bits, p), exponent);
  Value result = arith::BitcastOp::create(ir.b, ir.loc, ir.vector, scaled);
  return select_if(ir, arith::CmpFPredicate::OLT, x, ir.splat(lowest), ir.splat(0.0), result);
}

Value gelu(Ir& ir, Value x) {
  const bool single = ir.isa.element == Type::f32;
  const double centre = single ? kErfcCentre32 : kErfcCentre64;
  Value zero = ir.splat(0.0);
  Value z = ir.mulf(x, ir.splat(0.70710678118654752440));
  Value magnitude = select_if(ir, arith::CmpFPredicate::OLT, z, zero, ir.subf(zero, z), z);
  magnitude = at_most(ir, magnitude, 1e3); // keeps t finite; erfc is 0 long before
  Value c = ir.splat(centre);
  Value t = ir.divf(ir.subf(magnitude, c), ir.addf(magnitude, c));
  Value series = single ? polynomial(ir, t, kErfc32) : polynomial(ir, t, kErfc64);
  Value decay = exp(ir, ir.subf(zero, ir.mulf(magnitude, magnitude)));
  Value tail = ir.mulf(decay, series); // erfc(|z|)
  Value erfc = select_if(ir, arith::CmpFPredicate::OGT, z, zero, ir.subf(ir.splat(2.0), tail), tail);
  return ir.mulf(ir.mulf(ir.splat(0.5), x), erfc);
}

Value silu(Ir& ir, Value x) {
  // exp(-|x|) cannot overflow, so that large negative x goes to 0 and not to x / (the largest exponential).
  Value zero = ir.splat(0.0);
  Value negative = arith::CmpFOp::create(ir.b, ir.loc, arith::CmpFPredicate::OLT, x, zero);
  Value decay = exp(ir, ir.select(negative, x, ir.subf(zero, x)));
  Value numerator = ir.select(negative, ir.mulf(x, decay), x);
  return ir.divf(numerator, ir.addf(ir.splat(1.0), decay));
}

Value apply_epilogue(Ir& ir, const std::vector<EpilogueOp>& ops, Value x, Value bias) {
  for (EpilogueOp op : ops) switch (op) {
    case EpilogueOp::bias:
      x = ir.addf(x, bias);
      break;
    case EpilogueOp::relu:
      x = relu(ir, x);
      break;
    case EpilogueOp::gelu:
      x = gelu(ir, x);
      break;
    case EpilogueOp::silu:
      x = silu(ir, x);
      break;
    default:
      break;
    }
  return x;
}

} // namespace deepgen
