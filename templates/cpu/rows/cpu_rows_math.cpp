#include "templates/cpu/rows/cpu_rows_math.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

namespace deepgen {
namespace {

namespace arith = mlir::arith;

/// i32, or the vector of i32 with as many lanes.
mlir::Type bits_like(Ir& ir, Value x) {
  mlir::Type lane = ir.b.getI32Type();
  if (auto type = mlir::dyn_cast<mlir::VectorType>(x.getType()))
    return mlir::VectorType::get(type.getShape(), lane);
  return lane;
}

Value bits_constant(Ir& ir, mlir::Type type, int32_t x) {
  mlir::TypedAttr attribute = ir.b.getIntegerAttr(ir.b.getI32Type(), x);
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
    attribute = mlir::DenseElementsAttr::get(vector, mlir::Attribute(attribute));
  return arith::ConstantOp::create(ir.b, ir.loc, attribute);
}

Value bitcast(Ir& ir, mlir::Type type, Value x) { return arith::BitcastOp::create(ir.b, ir.loc, type, x); }

Value compare(Ir& ir, arith::CmpFPredicate predicate, Value x, Value y) {
  return arith::CmpFOp::create(ir.b, ir.loc, predicate, x, y);
}

/// By scripts/fit_exp.py 6: to 4e-9 for |r| <= ln(2)/2, and to 1.4 u when evaluated in f32.
constexpr double kExp[] = {1,
                           1.000000064683327,
                           0.5000000080800203,
                           0.16666325694063527,
                           0.041666240712761815,
                           0.00838110928999813,
                           0.0013948580816686438};

} // namespace

// Cody and Waite, as in epilogue.cpp, but 2^n is a factor: so a NaN stays one, and n = -127, whose bits are
// 0, makes 0. n + 127 lies in the low bits of the sum with 1.5 * 2^23 + 127.
Value exp_of_negative(Ir& ir, Value x) {
  constexpr double kLowest = -88, kMagic = 12582912 + 127;
  Value lowest = ir.constant_like(x, kLowest);
  Value bounded = ir.select(compare(ir, arith::CmpFPredicate::OLT, x, lowest), lowest, x);
  Value shifted = ir.fma(bounded, ir.constant_like(x, 1.44269504088896340736), ir.constant_like(x, kMagic));
  Value n = ir.subf(shifted, ir.constant_like(x, kMagic));
  Value r = ir.fma(n, ir.constant_like(x, -0.693145751953125), bounded);
  r = ir.fma(n, ir.constant_like(x, -1.428606765330187e-06), r);
  const mlir::Type bits = bits_like(ir, x);
  Value power = arith::ShLIOp::create(ir.b, ir.loc, bitcast(ir, bits, shifted), bits_constant(ir, bits, 23));
  return ir.mulf(ir.polynomial(r, kExp), bitcast(ir, x.getType(), power));
}

// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 atanh(f), f = (m - 1) / (m + 1), |f| <= 0.172, by its
// series up to f^9, whose next term is below 2^-28.
Value log_of_sum(Ir& ir, Value x) {
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const mlir::Type i32 = ir.b.getI32Type();
  const auto constant = [&](int32_t v) { return bits_constant(ir, i32, v); };
  Value from_root = arith::SubIOp::create(ir.b, ir.loc, bitcast(ir, i32, x), constant(kRootHalf));
  Value exponent = arith::ShRSIOp::create(ir.b, ir.loc, from_root, constant(23));
  Value fraction = arith::AndIOp::create(ir.b, ir.loc, from_root, constant(0x7fffff));
  Value m = bitcast(ir, x.getType(), arith::AddIOp::create(ir.b, ir.loc, fraction, constant(kRootHalf)));
  Value e = arith::SIToFPOp::create(ir.b, ir.loc, x.getType(), exponent);
  Value one = ir.constant_like(x, 1.0);
  Value f = ir.divf(ir.subf(m, one), ir.addf(m, one));
  Value series = ir.polynomial(ir.mulf(f, f), {2, 2. / 3, 2. / 5, 2. / 7, 2. / 9});
  Value log = ir.fma(e, ir.constant_like(x, 1.428606765330187e-06), ir.mulf(f, series));
  log = ir.fma(e, ir.constant_like(x, 0.693145751953125), log);
  const double infinity = std::numeric_limits<double>::infinity();
  Value zero = ir.constant_like(x, 0.0);
  log = ir.select(compare(ir, arith::CmpFPredicate::OEQ, x, zero), ir.constant_like(x, -infinity), log);
  Value finite = compare(ir, arith::CmpFPredicate::OLT, x, ir.constant_like(x, infinity));
  return ir.select(finite, log, x);
}

Value greater(Ir& ir, Value x, Value y) {
  return ir.select(compare(ir, arith::CmpFPredicate::OGT, y, x), y, x);
}

Value magnitude_bits(Ir& ir, Value x) {
  const mlir::Type bits = bits_like(ir, x);
  return arith::AndIOp::create(ir.b, ir.loc, bitcast(ir, bits, x), bits_constant(ir, bits, 0x7fffffff));
}

Value greater_bits(Ir& ir, Value x, Value y) { return arith::MaxSIOp::create(ir.b, ir.loc, x, y); }

Value from_bits(Ir& ir, Value bits) {
  mlir::Type type = ir.element;
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(bits.getType()))
    type = mlir::VectorType::get(vector.getShape(), type);
  return bitcast(ir, type, bits);
}

Value combine_lanes(Ir& ir, Value vector, const std::function<Value(Value, Value)>& combine) {
  // Halves as shorter vectors: LLVM 22 narrows shuffles of whole ones to wrong lanes (v16i32, AVX-512).
  const int64_t lanes = mlir::cast<mlir::VectorType>(vector.getType()).getNumElements();
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    llvm::SmallVector<int64_t> lower, upper;
    for (int64_t i = 0; i < half; ++i) lower.push_back(i), upper.push_back(half + i);
    vector = combine(ir.shuffle(vector, vector, lower), ir.shuffle(vector, vector, upper));
  }
  return mlir::vector::ExtractOp::create(ir.b, ir.loc, vector, 0);
}

Value square_root(Ir& ir, Value scalar) { return mlir::math::SqrtOp::create(ir.b, ir.loc, scalar); }

} // namespace deepgen
