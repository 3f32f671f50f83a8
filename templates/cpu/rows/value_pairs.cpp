#include "templates/cpu/rows/value_pairs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {
namespace {

namespace arith = mlir::arith;
namespace llvmd = mlir::LLVM;

constexpr uint32_t kUpper = 0xffff0000u;

mlir::VectorType words(Ir& ir) { return mlir::VectorType::get({ir.isa.lanes()}, ir.b.getI32Type()); }

Value word(Ir& ir, uint32_t x) {
  auto attribute = ir.b.getIntegerAttr(ir.b.getI32Type(), int64_t(int32_t(x)));
  return arith::ConstantOp::create(ir.b, ir.loc,
                                   mlir::DenseElementsAttr::get(words(ir), mlir::Attribute(attribute)));
}

/// Words whose upper halves are the bits of the nearest bf16; of two, the even one.
Value rounded_up(Ir& ir, Value floats) {
  Value bits = arith::BitcastOp::create(ir.b, ir.loc, words(ir), floats);
  Value upper = arith::ShRUIOp::create(ir.b, ir.loc, bits, word(ir, 16));
  Value odd = arith::AndIOp::create(ir.b, ir.loc, upper, word(ir, 1));
  Value half = arith::AddIOp::create(ir.b, ir.loc, odd, word(ir, 0x7fff));
  return arith::AddIOp::create(ir.b, ir.loc, bits, half);
}

} // namespace

Value load_half(Ir& ir, Value address, Half half) {
  Value both = llvmd::LoadOp::create(ir.b, ir.loc, words(ir), address, unsigned(size_of(Type::bf16)));
  Value bits = half == Half::even ? Value(arith::ShLIOp::create(ir.b, ir.loc, both, word(ir, 16)))
                                  : Value(arith::AndIOp::create(ir.b, ir.loc, both, word(ir, kUpper)));
  return arith::BitcastOp::create(ir.b, ir.loc, ir.vector, bits);
}

void store_pair(Ir& ir, Value even, Value odd, Value address, bool aligned) {
  Value lower = arith::ShRUIOp::create(ir.b, ir.loc, rounded_up(ir, even), word(ir, 16));
  Value upper = arith::AndIOp::create(ir.b, ir.loc, rounded_up(ir, odd), word(ir, kUpper));
  Value both = arith::OrIOp::create(ir.b, ir.loc, lower, upper);
  const int64_t alignment = aligned ? pair_bytes(ir) : size_of(Type::bf16);
  llvmd::StoreOp::create(ir.b, ir.loc, both, address, unsigned(alignment), false, aligned);
}

int64_t pair_bytes(const Ir& ir) { return 2 * ir.isa.lanes() * size_of(Type::bf16); }

} // namespace deepgen
