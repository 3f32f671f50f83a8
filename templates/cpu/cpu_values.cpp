#include "templates/cpu/cpu_values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace deepgen {
namespace {

namespace arith = mlir::arith;
namespace llvmd = mlir::LLVM;

/// Integer arithmetic on the bits of a vector of f32.
struct Bits {
  Ir& ir;
  mlir::VectorType type = mlir::VectorType::get({ir.isa.lanes()}, ir.b.getI32Type());

  Value of(Value floats) { return arith::BitcastOp::create(ir.b, ir.loc, type, floats); }
  Value floats(Value bits) { return arith::BitcastOp::create(ir.b, ir.loc, ir.vector, bits); }
  Value constant(uint32_t x) {
    auto attribute = ir.b.getIntegerAttr(ir.b.getI32Type(), int64_t(int32_t(x)));
    return arith::ConstantOp::create(ir.b, ir.loc,
                                     mlir::DenseElementsAttr::get(type, mlir::Attribute(attribute)));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(ir.b, ir.loc, x, y); }
  Value add(Value x, uint32_t y) { return add(x, constant(y)); }
  Value sub(Value x, uint32_t y) { return arith::SubIOp::create(ir.b, ir.loc, x, constant(y)); }
  Value with(Value x, uint32_t y) { return arith::AndIOp::create(ir.b, ir.loc, x, constant(y)); }
  Value join(Value x, Value y) { return arith::OrIOp::create(ir.b, ir.loc, x, y); }
  Value left(Value x, uint32_t places) { return arith::ShLIOp::create(ir.b, ir.loc, x, constant(places)); }
  Value right(Value x, uint32_t places) { return arith::ShRUIOp::create(ir.b, ir.loc, x, constant(places)); }
  /// Of values without the sign bit, as integers.
  Value above(Value x, uint32_t y) {
    return arith::CmpIOp::create(ir.b, ir.loc, arith::CmpIPredicate::sgt, x, constant(y));
  }
  Value select(Value condition, Value yes, Value no) { return ir.select(condition, yes, no); }

  /// x without its last `places` bits, rounded to nearest even.
  Value rounded(Value x, uint32_t places) { return right(to_nearest(x, places), places); }
  /// The same above these bits, which have no meaning then.
  Value to_nearest(Value x, uint32_t places) {
    Value odd = with(right(x, places), 1);
    return add(x, add(odd, (1u << (places - 1)) - 1));
  }
};

constexpr uint32_t kInfinityBits = 0x7f800000, kMagnitude = 0x7fffffff;

mlir::Type stored_element(Ir& ir, Type type) {
  switch (type) {
  case Type::f32:
    return ir.b.getF32Type();
  case Type::f16:
  case Type::bf16:
    return ir.b.getI16Type();
  default:
    return ir.b.getI8Type();
  }
}

/// A level that converts between f16 and f32 by itself.
bool has_f16(const Ir& ir) { return ir.isa.level >= 3; }
mlir::VectorType halves(Ir& ir) { return mlir::VectorType::get({ir.isa.lanes()}, ir.b.getF16Type()); }

Value mask_of(Ir& ir, int64_t count) {
  llvm::SmallVector<bool> lanes(size_t(ir.isa.lanes()), false);
  std::fill(lanes.begin(), lanes.begin() + count, true);
  auto type = mlir::VectorType::get({ir.isa.lanes()}, ir.i1);
  return arith::ConstantOp::create(ir.b, ir.loc,
                                   mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(lanes)));
}

Value load_stored(Ir& ir, mlir::Type element, int64_t bytes, Value address, int64_t count) {
  auto type = mlir::VectorType::get({ir.isa.lanes()}, element);
  if (count == ir.isa.lanes()) return llvmd::LoadOp::create(ir.b, ir.loc, type, address, unsigned(bytes));
  Value zero = arith::ConstantOp::create(ir.b, ir.loc, ir.b.getZeroAttr(type));
  return llvmd::MaskedLoadOp::create(ir.b, ir.loc, type, address, mask_of(ir, count), zero, unsigned(bytes));
}

// The exponent of f16 moved to that of f32 by a multiplication, which makes subnormals normal.
Value from_f16_bits(Ir& ir, Value stored) {
  Bits bits{ir};
  Value wide = arith::ExtUIOp::create(ir.b, ir.loc, bits.type, stored);
  Value magnitude = bits.left(bits.with(wide, 0x7fff), 13), sign = bits.left(bits.with(wide, 0x8000), 16);
  Value scaled = bits.of(ir.mulf(bits.floats(magnitude), ir.constant_like(bits.floats(magnitude), 0x1p112)));
  Value special = bits.join(magnitude, bits.constant(kInfinityBits));
  Value is_special = bits.above(magnitude, (0x7c00u << 13) - 1);
  return bits.floats(bits.join(bits.select(is_special, special, scaled), sign));
}

Value to_f16_bits(Ir& ir, Value x) {
  Bits bits{ir};
  Value all = bits.of(x), magnitude = bits.with(all, kMagnitude);
  Value sign = bits.right(bits.with(all, 0x80000000u), 16);
  Value normal = bits.sub(bits.rounded(magnitude, 13), 112u << 10);
  // Below 2^-14 a step is 2^-24, which is that of sums with 1/2.
  Value small = bits.of(ir.addf(bits.floats(magnitude), ir.constant_like(x, 0.5)));
  Value result = bits.select(bits.above(magnitude, 0x38800000 - 1), normal, bits.sub(small, 0x3f000000));
  result = bits.select(bits.above(magnitude, 0x477fffff), bits.constant(0x7c00), result); // 65536 and more
  result = bits.select(bits.above(magnitude, kInfinityBits), bits.constant(0x7e00), result);
  return bits.join(result, sign);
}

/// In the upper half of each lane; below it is what rounding leaves.
Value to_upper_bf16(Ir& ir, Value x) {
  Bits bits{ir};
  Value is_nan = arith::CmpFOp::create(ir.b, ir.loc, arith::CmpFPredicate::UNO, x, x);
  return bits.select(is_nan, bits.constant(0x7fc00000), bits.to_nearest(bits.of(x), 16));
}
Value to_bf16_bits(Ir& ir, Value x) {
  Bits bits{ir};
  Value is_nan = arith::CmpFOp::create(ir.b, ir.loc, arith::CmpFPredicate::UNO, x, x);
  return bits.select(is_nan, bits.constant(0x7fc0), bits.rounded(bits.of(x), 16));
}

Value to_e4m3_bits(Ir& ir, Value x) {
  Bits bits{ir};
  Value all = bits.of(x), magnitude = bits.with(all, kMagnitude);
  Value sign = bits.right(bits.with(all, 0x80000000u), 24);
  Value normal = bits.sub(bits.rounded(magnitude, 20), 120u << 3);
  // Below 2^-6 a step is 2^-9, which is that of sums with 2^14.
  Value small = bits.of(ir.addf(bits.floats(magnitude), ir.constant_like(x, 0x1p14)));
  Value result = bits.select(bits.above(magnitude, 0x3c800000 - 1), normal, bits.sub(small, 0x46800000));
  result = bits.select(bits.above(magnitude, kInfinityBits), bits.constant(0x7f), result);
  return bits.join(result, sign);
}

/// The sum with 1.5 * 2^23 has the integer in its low bits.
Value to_i8_bits(Ir& ir, Value x) {
  Bits bits{ir};
  Value shifted = bits.of(ir.addf(x, ir.constant_like(x, 12582912.0)));
  Value is_nan = arith::CmpFOp::create(ir.b, ir.loc, arith::CmpFPredicate::UNO, x, x);
  return bits.select(is_nan, bits.constant(0), shifted);
}

Value stored_vector(Ir& ir, Type type, Value x) {
  const auto stored_type = [&](mlir::Type element) {
    return mlir::VectorType::get({ir.isa.lanes()}, element);
  };
  const auto narrow = [&](mlir::Type element, Value bits) -> Value {
    return arith::TruncIOp::create(ir.b, ir.loc, stored_type(element), bits);
  };
  switch (type) {
  case Type::f32:
    return x;
  case Type::f16:
    if (has_f16(ir)) {
      Value rounded = arith::TruncFOp::create(ir.b, ir.loc, halves(ir), x);
      return arith::BitcastOp::create(ir.b, ir.loc, stored_type(ir.b.getI16Type()), rounded);
    }
    return narrow(ir.b.getI16Type(), to_f16_bits(ir, x));
  case Type::bf16:
    return narrow(ir.b.getI16Type(), to_bf16_bits(ir, x));
  case Type::e4m3:
    return narrow(ir.b.getI8Type(), to_e4m3_bits(ir, x));
  default:
    return narrow(ir.b.getI8Type(), to_i8_bits(ir, x));
  }
}

} // namespace

Value element_at(Ir& ir, Type type, Value base, Value index) {
  return llvmd::GEPOp::create(ir.b, ir.loc, ir.pointer, stored_element(ir, type), base,
                              mlir::ValueRange{index}, llvmd::GEPNoWrapFlags::inbounds);
}

Value load_values(Ir& ir, Type type, Value address, int64_t count) {
  if (type == Type::f32) return ir.load_vector(address, count);
  Value stored = load_stored(ir, ir.b.getI16Type(), 2, address, count);
  if (type == Type::f16 && has_f16(ir)) {
    Value as_halves = arith::BitcastOp::create(ir.b, ir.loc, halves(ir), stored);
    return arith::ExtFOp::create(ir.b, ir.loc, ir.vector, as_halves);
  }
  if (type == Type::f16) return from_f16_bits(ir, stored);
  Bits bits{ir};
  return bits.floats(bits.left(arith::ExtUIOp::create(ir.b, ir.loc, bits.type, stored), 16));
}

int64_t stored_bytes(const Ir& ir, Type type) { return ir.isa.lanes() * size_of(type); }

namespace {

/// Elements as they are in memory.
void store_elements(Ir& ir, Type type, Value value, Value address, int64_t count, bool aligned) {
  if (count == 1) {
    // LLVM 22 makes a store of 32 bits of a masked one that narrows a single lane.
    Value lane = mlir::vector::ExtractOp::create(ir.b, ir.loc, value, 0);
    llvmd::StoreOp::create(ir.b, ir.loc, lane, address, unsigned(size_of(type)));
    return;
  }
  if (count < ir.isa.lanes()) {
    llvmd::MaskedStoreOp::create(ir.b, ir.loc, value, address, mask_of(ir, count), unsigned(size_of(type)));
    return;
  }
  const int64_t alignment = aligned ? stored_bytes(ir, type) : size_of(type);
  llvmd::StoreOp::create(ir.b, ir.loc, value, address, unsigned(alignment), false, aligned);
}

} // namespace

void store_values(Ir& ir, Type type, Value x, Value address, int64_t count, bool aligned) {
  store_elements(ir, type, stored_vector(ir, type, x), address, count, aligned);
}

void store_bf16_values(Ir& ir, Value x, Value address, int64_t count, Bf16Rounding how) {
  if (how == Bf16Rounding::bits) return store_values(ir, Type::bf16, x, address, count);
  const auto type = mlir::VectorType::get({ir.isa.lanes()}, ir.b.getBF16Type());
  const std::string name = "llvm.x86.avx512bf16.cvtneps2bf16." + std::to_string(8 * ir.isa.bytes());
  Value rounded =
      llvmd::CallIntrinsicOp::create(ir.b, ir.loc, type, ir.b.getStringAttr(name), mlir::ValueRange{x})
          .getResult(0);
  const auto stored = mlir::VectorType::get({ir.isa.lanes()}, ir.b.getI16Type());
  store_elements(ir, Type::bf16, arith::BitcastOp::create(ir.b, ir.loc, stored, rounded), address, count,
                 false);
}

void store_bf16_pair(Ir& ir, Value first, Value second, Value address, Bf16Rounding how) {
  const int64_t both = 2 * ir.isa.lanes();
  Value value;
  if (how == Bf16Rounding::instruction) {
    const auto type = mlir::VectorType::get({both}, ir.b.getBF16Type());
    const std::string name = "llvm.x86.avx512bf16.cvtne2ps2bf16." + std::to_string(8 * ir.isa.bytes());
    value = llvmd::CallIntrinsicOp::create(ir.b, ir.loc, type, ir.b.getStringAttr(name),
                                           mlir::ValueRange{second, first})
                .getResult(0);
  } else {
    const auto halves = mlir::VectorType::get({both}, ir.b.getI16Type());
    const auto parts = [&](Value x) -> Value {
      return llvmd::BitcastOp::create(ir.b, ir.loc, halves, to_upper_bf16(ir, x));
    };
    llvm::SmallVector<int64_t> upper;
    for (int64_t i = 0; i < both; ++i) upper.push_back(2 * i + 1);
    value = ir.shuffle(parts(first), parts(second), upper);
  }
  llvmd::StoreOp::create(ir.b, ir.loc, value, address, unsigned(size_of(Type::bf16)));
}

void finish_stores(Ir& ir) {
  llvmd::CallIntrinsicOp::create(ir.b, ir.loc, ir.b.getStringAttr("llvm.x86.sse.sfence"), mlir::ValueRange{});
}

Value first_lanes(Ir& ir, Value x, int64_t count, double rest) {
  if (count == ir.isa.lanes()) return x;
  return ir.select(mask_of(ir, count), x, ir.constant_like(x, rest));
}

} // namespace deepgen
