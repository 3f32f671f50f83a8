#include "templates/ir/epilogue.h"

#include "base/problem/signature.h"
#include "runtime/include/deepgen/erfc_table.h"
#include "runtime/include/deepgen/kernel_abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "templates/ir/ir_builder.h"

#include <algorithm>

namespace deepgen {
namespace {

namespace arith = mlir::arith;

bool is_single(Value x) { return mlir::getElementTypeOrSelf(x).isF32(); }

Value select_if(Ir& ir, arith::CmpFPredicate predicate, Value x, Value y, Value yes, Value no) {
  return ir.select(arith::CmpFOp::create(ir.b, ir.loc, predicate, x, y), yes, no);
}

/// Ordered comparisons are false for NaN, so a NaN in x passes through both.
Value at_most(Ir& ir, Value x, double bound) {
  return select_if(ir, arith::CmpFPredicate::OGT, x, ir.constant_like(x, bound), ir.constant_like(x, bound),
                   x);
}
Value at_least(Ir& ir, Value x, double bound) {
  return select_if(ir, arith::CmpFPredicate::OLT, x, ir.constant_like(x, bound), ir.constant_like(x, bound),
                   x);
}

/// As the table of f64, which the runtime has too. Largest relative error, evaluated in f32: 2.1e-7.
constexpr double kErfcCentre32 = 3, kErfcCentre64 = DEEPGEN_ERFC_F64_CENTRE;
constexpr double kErfc32[] = {0.17900115365185434,    -0.32623364583192993,  0.2456036216271468,
                              -0.15011418584856487,   0.07166797533270303,   -0.02440260496936182,
                              0.004259766871257394,   0.0007320455403284751, -0.0005781560561591779,
                              1.8398235500739622e-05, 4.564088760267887e-05};
constexpr double kErfc64[] = {DEEPGEN_ERFC_F64};

} // namespace

std::vector<EpilogueOperand> operands_of(EpilogueOp op) {
  std::vector<EpilogueOperand> out;
  for (const Operand& x : operands_of(op, Gemm())) {
    auto shape = OperandShape::matrix;
    if (x.shape == Operand::Shape::per_column) shape = OperandShape::column;
    if (x.shape == Operand::Shape::per_row) shape = OperandShape::row;
    if (x.shape == Operand::Shape::value) shape = x.in_memory() ? OperandShape::single : OperandShape::value;
    out.push_back({x.name, shape});
  }
  return out;
}

bool has_operand(const std::vector<EpilogueOp>& ops, OperandShape shape) {
  return std::ranges::any_of(ops, [&](EpilogueOp op) {
    return std::ranges::any_of(operands_of(op), [&](const EpilogueOperand& x) { return x.shape == shape; });
  });
}

std::vector<std::string> epilogue_args(const std::vector<EpilogueOp>& ops, bool strides) {
  static constexpr const char* kOrder[] = {DEEPGEN_ARG_NAMES};
  std::vector<std::string> used, out;
  for (EpilogueOp op : ops)
    for (const EpilogueOperand& operand : operands_of(op)) {
      const std::string name = operand.name;
      used.push_back(name);
      if (operand.shape != OperandShape::matrix) continue;
      used.push_back("ld_" + name);
      if (strides) used.push_back("stride_" + name);
    }
  for (const char* name : kOrder)
    if (llvm::is_contained(used, name)) out.push_back(name);
  return out;
}

bool is_cheap(const std::vector<EpilogueOp>& ops) {
  return std::none_of(ops.begin(), ops.end(), [](EpilogueOp op) {
    return op == EpilogueOp::gelu || op == EpilogueOp::gelu_tanh || op == EpilogueOp::silu ||
           op == EpilogueOp::sigmoid;
  });
}

bool has_gelu(const Gemm& p) { return p.has(EpilogueOp::gelu) || p.gate == EpilogueOp::gelu; }

Value relu(Ir& ir, Value x) { return at_least(ir, x, 0.0); }

Value clamp(Ir& ir, Value x, Value low, Value high) {
  x = select_if(ir, arith::CmpFPredicate::OLT, x, low, low, x);
  return select_if(ir, arith::CmpFPredicate::OGT, x, high, high, x);
}

// Cody and Waite: exp(x) = 2^n exp(r), r = x - n ln 2 in two steps, |r| <= ln(2)/2, Taylor polynomial. n is
// rounded by adding 1.5 * 2^mantissa bits, which leaves it in the low bits of the sum on every level, SSE2
// too.
Value exp(Ir& ir, Value x) {
  const bool single = is_single(x);
  const double lowest = single ? -87.33 : -708.39, highest = single ? 88.0 : 709.0;
  const double magic = single ? 12582912.0 : 6755399441055744.0;
  const double ln2_high = single ? 0.693145751953125 : 6.93147180369123816490e-01;
  const double ln2_low = single ? 1.428606765330187e-06 : 1.90821492927058770002e-10;
  const int64_t mantissa = single ? 23 : 52, degree = single ? 7 : 13;

  Value clamped = at_most(ir, at_least(ir, x, lowest), highest);
  Value shifted = ir.fma(clamped, ir.constant_like(x, 1.44269504088896340736), ir.constant_like(x, magic));
  Value n = ir.subf(shifted, ir.constant_like(x, magic));
  Value r = ir.fma(n, ir.constant_like(x, -ln2_high), clamped);
  r = ir.fma(n, ir.constant_like(x, -ln2_low), r);
  llvm::SmallVector<double> taylor = {1.0};
  for (int64_t i = 1; i <= degree; ++i) taylor.push_back(taylor.back() / double(i));
  Value p = ir.polynomial(r, taylor);

  mlir::Type lane = single ? ir.b.getI32Type() : ir.b.getI64Type(), bits = lane;
  mlir::TypedAttr places = ir.b.getIntegerAttr(lane, mantissa);
  if (auto type = mlir::dyn_cast<mlir::VectorType>(x.getType())) {
    auto vector = mlir::VectorType::get(type.getShape(), lane);
    places = mlir::DenseElementsAttr::get(vector, mlir::Attribute(places));
    bits = vector;
  }
  Value shift = arith::ConstantOp::create(ir.b, ir.loc, places);
  Value exponent =
      arith::ShLIOp::create(ir.b, ir.loc, arith::BitcastOp::create(ir.b, ir.loc, bits, shifted), shift);
  Value scaled =
      arith::AddIOp::create(ir.b, ir.loc, arith::BitcastOp::create(ir.b, ir.loc, bits, p), exponent);
  Value result = arith::BitcastOp::create(ir.b, ir.loc, x.getType(), scaled);
  return select_if(ir, arith::CmpFPredicate::OLT, x, ir.constant_like(x, lowest), ir.constant_like(x, 0.0),
                   result);
}

Value gelu(Ir& ir, Value x) {
  const bool single = is_single(x);
  const double centre = single ? kErfcCentre32 : kErfcCentre64;
  Value zero = ir.constant_like(x, 0.0);
  Value z = ir.mulf(x, ir.constant_like(x, 0.70710678118654752440));
  Value magnitude = select_if(ir, arith::CmpFPredicate::OLT, z, zero, ir.subf(zero, z), z);
  // Keeps t finite; erfc is 0 long before. On a CPU it is so from where it would be no normal number: such
  // cost a hundred cycles.
  const double last = mlir::isa<mlir::VectorType>(x.getType()) ? single ? 9.19 : 26.54 : 1e3;
  magnitude = select_if(ir, arith::CmpFPredicate::OGT, magnitude, ir.constant_like(x, last),
                        ir.constant_like(x, 1e3), magnitude);
  Value c = ir.constant_like(x, centre);
  Value t = ir.divf(ir.subf(magnitude, c), ir.addf(magnitude, c));
  Value series = single ? ir.polynomial(t, kErfc32) : ir.polynomial(t, kErfc64);
  Value decay = exp(ir, ir.subf(zero, ir.mulf(magnitude, magnitude)));
  Value tail = ir.mulf(decay, series); // erfc(|z|)
  Value erfc =
      select_if(ir, arith::CmpFPredicate::OGT, z, zero, ir.subf(ir.constant_like(x, 2.0), tail), tail);
  return ir.mulf(ir.mulf(ir.constant_like(x, 0.5), x), erfc);
}

namespace {

/// factor / (1 + exp(-x)). exp(-|x|) cannot overflow, so that large negative x goes to 0 and not to factor /
/// (the largest exponential).
Value gated(Ir& ir, Value x, Value factor) {
  Value zero = ir.constant_like(x, 0.0);
  Value negative = arith::CmpFOp::create(ir.b, ir.loc, arith::CmpFPredicate::OLT, x, zero);
  Value decay = exp(ir, ir.select(negative, x, ir.subf(zero, x)));
  Value numerator = ir.select(negative, ir.mulf(factor, decay), factor);
  return ir.divf(numerator, ir.addf(ir.constant_like(x, 1.0), decay));
}

} // namespace

Value silu(Ir& ir, Value x) { return gated(ir, x, x); }

Value sigmoid(Ir& ir, Value x) {
  Value result = gated(ir, x, ir.constant_like(x, 1.0));
  return select_if(ir, arith::CmpFPredicate::UNO, x, x, x, result); // exp() loses NaN
}

Value gelu_tanh(Ir& ir, Value x) {
  constexpr double kTwiceRoot = 1.59576912160573071176, kCubic = 0.044715; // 2 sqrt(2 / pi)
  Value cubic =
      ir.fma(ir.mulf(x, x), ir.constant_like(x, kTwiceRoot * kCubic), ir.constant_like(x, kTwiceRoot));
  return gated(ir, ir.mulf(x, cubic), x);
}

Value apply_epilogue(Ir& ir, const std::vector<EpilogueOp>& ops, Value x, const OperandValue& operand) {
  for (EpilogueOp op : ops) {
    Values values;
    for (const EpilogueOperand& each : operands_of(op)) values.push_back(operand(each));
    switch (op) {
    case EpilogueOp::bias:
    case EpilogueOp::bias_row:
    case EpilogueOp::residual:
      x = ir.addf(x, values[0]);
      break;
    case EpilogueOp::multiply:
    case EpilogueOp::scale_a:
    case EpilogueOp::scale_b:
    case EpilogueOp::scale_d:
    case EpilogueOp::scale_row:
    case EpilogueOp::scale_col:
      x = ir.mulf(x, values[0]);
      break;
    case EpilogueOp::clamp:
      x = clamp(ir, x, values[0], values[1]);
      break;
    case EpilogueOp::relu:
      x = relu(ir, x);
      break;
    case EpilogueOp::prelu:
      x = select_if(ir, arith::CmpFPredicate::OGT, x, ir.constant_like(x, 0.0), x, ir.mulf(x, values[0]));
      break;
    case EpilogueOp::gelu:
      x = gelu(ir, x);
      break;
    case EpilogueOp::gelu_tanh:
      x = gelu_tanh(ir, x);
      break;
    case EpilogueOp::silu:
      x = silu(ir, x);
      break;
    case EpilogueOp::sigmoid:
      x = sigmoid(ir, x);
      break;
    }
  }
  return x;
}

} // namespace deepgen
