// Numbers and vectors of them: between the types of operands and those that are computed with, and constants.
#include "templates/ir/gpu_ir.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace deepgen {

namespace arith = mlir::arith;
namespace llvmd = mlir::LLVM;

namespace {

mlir::Type element_of(mlir::Type type) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(type);
  return vector ? vector.getElementType() : type;
}

int64_t count_of(mlir::Type type) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

/// The same shape with another element.
mlir::Type reshaped(mlir::Type like, mlir::Type element) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(like);
  return vector ? mlir::Type(mlir::VectorType::get(vector.getShape(), element)) : element;
}

} // namespace

Value GpuIr::add_sums(Value x, Value y) {
  return mlir::isa<mlir::IntegerType>(element_of(x.getType())) ? wrapping_add(x, y) : addf(x, y);
}

Value GpuIr::bitcast(mlir::Type type, Value x) {
  return x.getType() == type ? x : Value(llvmd::BitcastOp::create(b, loc, type, x));
}

Value GpuIr::convert(mlir::Type to, Value x) {
  mlir::Type type = reshaped(x.getType(), element_of(to));
  if (type == x.getType()) return x;
  mlir::Type from = element_of(x.getType()), into = element_of(to);
  if (mlir::isa<mlir::IntegerType>(from)) return arith::SIToFPOp::create(b, loc, type, x);
  const unsigned wide = into.getIntOrFloatBitWidth(), narrow = from.getIntOrFloatBitWidth();
  if (wide > narrow) return arith::ExtFOp::create(b, loc, type, x);
  if (wide < narrow) return arith::TruncFOp::create(b, loc, type, x);
  return convert(to, convert(f32, x)); // f16 and bf16
}

Value GpuIr::decode(Type from, Value x) {
  switch (from) {
  case Type::f16:
  case Type::bf16:
    return convert(f32, x);
  case Type::i8:
    return arith::ExtSIOp::create(b, loc, reshaped(x.getType(), i32), x);
  case Type::e4m3:
  case Type::e5m2: {
    const int64_t count = count_of(x.getType());
    if (count % 2 == 0) {
      Values all;
      for (int64_t i = 0; i < count; i += 2)
        for (Value v : unpack(decode_pair(from, slice(x, i, 2)))) all.push_back(v);
      return pack(all);
    }
    Values all;
    for (Value v : unpack(x)) all.push_back(from == Type::e4m3 ? decode_e4m3(v) : decode_e5m2(v));
    return pack(all);
  }
  default:
    return x;
  }
}

Value GpuIr::decode_pair(Type from, Value x) {
  Values both;
  for (Value v : unpack(x)) both.push_back(from == Type::e4m3 ? decode_e4m3(v) : decode_e5m2(v));
  return pack(both);
}

/// Sign to the top, exponent and significand where f32 has them; the product moves the bias from 7 to 127,
/// exactly for subnormals too.
Value GpuIr::decode_e4m3(Value x) {
  Value wide = arith::ExtUIOp::create(b, loc, i32, x);
  Value magnitude = bit_and(wide, 0x7f), sign = shift_left(bit_and(wide, 0x80), 24);
  Value scaled = arith::MulFOp::create(b, loc, bitcast(f32, shift_left(magnitude, 20)), number(f32, 0x1p120));
  Value bits = select(equal(magnitude, c(0x7f)), c(0x7fc00000), bitcast(i32, scaled));
  return bitcast(f32, bit_or(bits, sign));
}

Value GpuIr::decode_e5m2(Value x) { // the upper half of an f16
  Value wide = arith::ExtUIOp::create(b, loc, i16, x);
  return convert(f32, bitcast(f16, shift_left(wide, 8)));
}

Value GpuIr::encode(Type to, Value x) {
  switch (to) {
  case Type::f16:
    return convert(f16, x);
  case Type::bf16:
    return convert(bf16, x);
  case Type::i8: {
    Values all;
    for (Value v : unpack(x)) all.push_back(round_to_i8(v));
    return pack(all);
  }
  case Type::e4m3:
    return encode_e4m3(x);
  default:
    return x;
  }
}

Value GpuIr::encode_e4m3(Value x) {
  Values all;
  for (Value part : unpack(x)) all.push_back(encode_e4m3_by_bits(part));
  return pack(all);
}

/// Where the chip has none of OCP's conversions: AMD's gfx942 has another e4m3, without -0 and with another
/// bias. A normal number keeps the upper bits of f32, rounded; the sum with 2^14 has an e4m3's smallest step,
/// 2^-9, as its last place.
Value GpuIr::encode_e4m3_by_bits(Value x) {
  constexpr int64_t kDropped = 20, kRebias = int64_t(127 - 7) << 23, kMost = 0x7e, kNan = 0x7f;
  Value bits = bitcast(i32, x), magnitude = bit_and(bits, 0x7fffffff);
  Value sign = bit_and(shift_right_bits(bits, 24), 0x80);
  Value even = bit_and(shift_right_bits(magnitude, kDropped), 1);
  Value rounded =
      wrapping_add(wrapping_add(magnitude, even), c((int64_t(1) << (kDropped - 1)) - 1 - kRebias));
  Value normal = shift_right_bits(rounded, kDropped);
  Value step = addf(bitcast(f32, magnitude), number(f32, 0x1p14));
  Value small = sub(bitcast(i32, step), c(0x46800000)); // bits of 2^14
  Value code = select(less(magnitude, int64_t(127 - 6) << 23), small, min(normal, c(kMost)));

  code = select(less(c(0x7f800000), magnitude), c(kNan), bit_or(code, sign)); // without a sign, as NVIDIA's
  return arith::TruncIOp::create(b, loc, i8, code);
}

Value GpuIr::number(mlir::Type type, double value) {
  auto one = b.getFloatAttr(element_of(type), value);
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
    return arith::ConstantOp::create(b, loc, mlir::DenseElementsAttr::get(vector, mlir::Attribute(one)));
  return arith::ConstantOp::create(b, loc, one);
}
Value GpuIr::zero(mlir::Type type) { return arith::ConstantOp::create(b, loc, b.getZeroAttr(type)); }
Value GpuIr::greater(Value x, double y) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, number(x.getType(), y));
}
Value GpuIr::maximum(Value x, Value y) { return arith::MaximumFOp::create(b, loc, x, y); }
Value GpuIr::minimum(Value x, Value y) { return arith::MinimumFOp::create(b, loc, x, y); }
Value GpuIr::larger(Value x, Value y) { return arith::MaxNumFOp::create(b, loc, x, y); }
Value GpuIr::square_root(Value x) { return llvmd::SqrtOp::create(b, loc, x); }
Value GpuIr::multiply_add(Value x, Value y, Value z) { return llvmd::FMAOp::create(b, loc, x, y, z); }

Value GpuIr::extract(Value x, int64_t at) {
  if (!mlir::isa<mlir::VectorType>(x.getType())) return x;
  return mlir::vector::ExtractOp::create(b, loc, x, at);
}
Value GpuIr::pack(mlir::ValueRange scalars) {
  if (scalars.size() == 1) return scalars[0];
  auto type = mlir::VectorType::get({int64_t(scalars.size())}, scalars[0].getType());
  return mlir::vector::FromElementsOp::create(b, loc, type, scalars);
}
Values GpuIr::unpack(Value x) {
  Values out;
  for (int64_t i = 0; i < count_of(x.getType()); ++i) out.push_back(extract(x, i));
  return out;
}
Value GpuIr::slice(Value x, int64_t first, int64_t count) {
  if (first == 0 && count == count_of(x.getType())) return x;
  Values out;
  for (int64_t i = 0; i < count; ++i) out.push_back(extract(x, first + i));
  return pack(out);
}

} // namespace deepgen
