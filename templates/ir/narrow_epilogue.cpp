#include "templates/ir/narrow_epilogue.h"

#include "base/text/error.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deepgen {
namespace {

namespace arith = mlir::arith;

constexpr double kLog2E = 1.44269504088896340736;

/// The bits of x combined with the same 32 bits in each lane.
template <typename Operation>
Value with_bits(Ir& ir, Value x, uint32_t bits) {
  const auto type =
      mlir::VectorType::get(mlir::cast<mlir::VectorType>(x.getType()).getShape(), ir.b.getI32Type());
  const mlir::Attribute attribute = ir.b.getIntegerAttr(ir.b.getI32Type(), int64_t(int32_t(bits)));
  Value constant = arith::ConstantOp::create(ir.b, ir.loc, mlir::DenseElementsAttr::get(type, attribute));
  Value words = arith::BitcastOp::create(ir.b, ir.loc, type, x);
  return arith::BitcastOp::create(ir.b, ir.loc, x.getType(),
                                  Operation::create(ir.b, ir.loc, words, constant));
}

/// NaN stays NaN.
Value narrow_at_least(Ir& ir, Value x, double bound) {
  Value limit = ir.constant_like(x, bound);
  return ir.select(arith::CmpFOp::create(ir.b, ir.loc, arith::CmpFPredicate::OLT, x, limit), limit, x);
}
Value is_more(Ir& ir, Value x, double bound) {
  return arith::CmpFOp::create(ir.b, ir.loc, arith::CmpFPredicate::OGT, x, ir.constant_like(x, bound));
}
Value is_positive(Ir& ir, Value x) { return is_more(ir, x, 0.0); }

Value polynomial(Ir& ir, Value t, llvm::ArrayRef<double> ascending) {
  Value sum = ir.constant_like(t, ascending.back());
  for (double c : llvm::reverse(ascending.drop_back())) sum = ir.fma(sum, t, ir.constant_like(t, c));
  return sum;
}

/// 2^y as the product of both: of a number between 0.7 and 1.5, and a power of two.
struct Power {
  Value fraction, scale;
};

/// For -127 <= y <= 0, and NaN. At -127 the scale is 0, as its bits are. They come from the low bits of the
/// sum with 1.5 * 2^23 + 127, which is rounded to a whole number.
Power power_of_two(Ir& ir, Value y) {
  constexpr double kMagic = 12582912 + 127;
  // By scripts/fit_narrow.py: 2^f for |f| <= 1/2.
  constexpr double kFraction[] = {1.0000000717401383,  0.6931469668943792,   0.24022119274100423,
                                  0.05550713315368742, 0.009675566638023363, 0.0013276540075322944};
  Value shifted = ir.addf(y, ir.constant_like(y, kMagic));
  Value f = ir.subf(y, ir.subf(shifted, ir.constant_like(y, kMagic)));
  return {polynomial(ir, f, kFraction), with_bits<arith::ShLIOp>(ir, shifted, 23)};
}

/// factor / (1 + exp(-x)), by exp(-|x|) as in epilogue.cpp.
Value narrow_gated(Ir& ir, Value x, Value factor) {
  Value negative = with_bits<arith::OrIOp>(ir, x, 0x80000000);
  const Power power =
      power_of_two(ir, narrow_at_least(ir, ir.mulf(negative, ir.constant_like(x, kLog2E)), -127));
  Value decay = ir.mulf(power.fraction, power.scale);
  Value numerator = ir.select(is_positive(ir, x), factor, ir.mulf(factor, decay));
  return ir.divf(numerator, ir.addf(ir.constant_like(x, 1.0), decay));
}

/// x times the normal distribution's function. Its tail is exp(-x^2/2) times a polynomial in t = 1 / (1 + q
/// |x|) without a constant (scripts/fit_narrow.py), the form of Abramowitz and Stegun's 7.1.26.
Value narrow_gelu(Ir& ir, Value x) {
  constexpr double kQ = 0.29;
  constexpr double kTail[] = {0.11677719614645089,  0.10167158282861467, 0.17625507597505655,
                              -0.08800570236977831, 0.2810071151445419,  -0.08770515029659587};
  // The tail is a normal number up to the first, as numbers below cost a CPU a hundred cycles; from there it
  // is that of the second, which is 0.
  constexpr double kLastNormal = 12.949, kNone = 13.27;
  Value m = with_bits<arith::AndIOp>(ir, x, 0x7fffffff);
  m = ir.select(is_more(ir, m, kLastNormal), ir.constant_like(x, kNone), m);
  Value one = ir.constant_like(x, 1.0);
  Value t = ir.divf(one, ir.fma(m, ir.constant_like(x, kQ), one));
  Value series = ir.mulf(polynomial(ir, t, kTail), t);
  const Power power = power_of_two(ir, ir.mulf(ir.mulf(m, m), ir.constant_like(x, -kLog2E / 2)));
  Value tail = ir.mulf(ir.mulf(series, power.fraction), power.scale);
  return ir.mulf(x, ir.select(is_positive(ir, x), ir.subf(one, tail), tail));
}

Value narrow_gelu_tanh(Ir& ir, Value x) {
  constexpr double kTwiceRoot = 1.59576912160573071176, kCubic = 0.044715; // 2 sqrt(2 / pi)
  Value slope =
      ir.fma(ir.mulf(x, x), ir.constant_like(x, kTwiceRoot * kCubic), ir.constant_like(x, kTwiceRoot));
  return narrow_gated(ir, ir.mulf(x, slope), x);
}

} // namespace

bool has_narrow_function(EpilogueOp op) {
  return op == EpilogueOp::gelu || op == EpilogueOp::gelu_tanh || op == EpilogueOp::silu ||
         op == EpilogueOp::sigmoid;
}

Value narrow_function(Ir& ir, EpilogueOp op, Value x) {
  switch (op) {
  case EpilogueOp::gelu:
    return narrow_gelu(ir, x);
  case EpilogueOp::gelu_tanh:
    return narrow_gelu_tanh(ir, x);
  case EpilogueOp::silu:
    return narrow_gated(ir, x, x);
  case EpilogueOp::sigmoid:
    return narrow_gated(ir, x, ir.constant_like(x, 1.0));
  default:
    throw Error("no narrow form of the step '" + to_string(op) + "'");
  }
}

} // namespace deepgen
