#include "templates/ir/ir_builder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace deepgen {

namespace arith = mlir::arith;
namespace func = mlir::func;
namespace llvmd = mlir::LLVM;
namespace scf = mlir::scf;
namespace vector_dialect = mlir::vector;

Ir::Ir(mlir::ModuleOp module, VectorIsa target)
    : b(module.getContext()), loc(b.getUnknownLoc()), isa(target), i64(b.getI64Type()), i1(b.getI1Type()),
      pointer(llvmd::LLVMPointerType::get(b.getContext())),
      element(target.element == Type::f32 ? mlir::Type(b.getF32Type()) : mlir::Type(b.getF64Type())),
      vector(mlir::VectorType::get({target.lanes()}, element)), module_(module) {
  b.setInsertionPointToEnd(module.getBody());
}

Value Ir::constant(int64_t value) { return arith::ConstantIntOp::create(b, loc, i64, value); }
Value Ir::constant_like(Value x, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, x.getType(), value);
}

Value Ir::add(Value x, Value y) {
  const auto flags = arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;
  return arith::AddIOp::create(b, loc, x, y, flags);
}
Value Ir::add(Value x, int64_t y) { return y == 0 ? x : add(x, constant_like(x, y)); }
Value Ir::sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
Value Ir::mul(Value x, Value y) {
  const auto flags = arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;
  return arith::MulIOp::create(b, loc, x, y, flags);
}
Value Ir::mul(Value x, int64_t y) { return y == 1 ? x : mul(x, constant_like(x, y)); }
Value Ir::min(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value Ir::remainder(Value x, int64_t y) { return arith::RemUIOp::create(b, loc, x, constant_like(x, y)); }
Value Ir::shift_right(Value x, int64_t power) {
  return arith::DivUIOp::create(b, loc, x, constant_like(x, power));
}
Value Ir::equal(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y); }
Value Ir::not_equal(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, y);
}
Value Ir::widen(Value condition) { return arith::ExtUIOp::create(b, loc, i64, condition); }
Value Ir::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(b, loc, condition, yes, no);
}

Value Ir::at(Value base, Value offset) {
  return llvmd::GEPOp::create(b, loc, pointer, element, base, mlir::ValueRange{offset},
                              llvmd::GEPNoWrapFlags::inbounds);
}
Value Ir::at(Value base, int64_t offset) {
  if (offset == 0) return base;
  return llvmd::GEPOp::create(b, loc, pointer, element, base, llvm::ArrayRef<llvmd::GEPArg>{int32_t(offset)},
                              llvmd::GEPNoWrapFlags::inbounds);
}
Value Ir::at_byte(Value base, int64_t offset) {
  if (offset == 0) return base;
  return llvmd::GEPOp::create(b, loc, pointer, b.getI8Type(), base, mlir::ValueRange{constant(offset)});
}

Value Ir::load(mlir::Type type, Value address, int64_t alignment) {
  return llvmd::LoadOp::create(b, loc, type, address, unsigned(alignment));
}

Value Ir::mask(int64_t count) {
  llvm::SmallVector<bool> lanes(size_t(isa.lanes()), false);
  std::fill(lanes.begin(), lanes.begin() + count, true);
  auto type = mlir::VectorType::get({isa.lanes()}, i1);
  return arith::ConstantOp::create(b, loc, mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(lanes)));
}

Value Ir::mask(Value count) {
  mlir::Type i32 = b.getI32Type();
  auto type = mlir::VectorType::get({isa.lanes()}, i32);
  llvm::SmallVector<int32_t> lanes;
  for (int64_t lane = 0; lane < isa.lanes(); ++lane) lanes.push_back(int32_t(lane));
  Value numbers =
      arith::ConstantOp::create(b, loc, mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int32_t>(lanes)));
  Value narrow = arith::TruncIOp::create(b, loc, i32, count);
  Value all = vector_dialect::BroadcastOp::create(b, loc, type, narrow);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, numbers, all);
}

Value Ir::load_vector(Value address, Value count) {
  return llvmd::MaskedLoadOp::create(b, loc, vector, address, mask(count), splat(0.0),
                                     unsigned(size_of(isa.element)));
}
void Ir::store_vector(Value value, Value address, Value count) {
  llvmd::MaskedStoreOp::create(b, loc, value, address, mask(count), unsigned(size_of(isa.element)));
}

Value Ir::load_vector(Value address, int64_t count) {
  const unsigned alignment = unsigned(size_of(isa.element));
  if (count == isa.lanes()) return load(vector, address, alignment);
  return llvmd::MaskedLoadOp::create(b, loc, vector, address, mask(count), splat(0.0), alignment);
}

void Ir::store_vector(Value value, Value address, int64_t count) {
  const unsigned alignment = unsigned(size_of(isa.element));
  if (count == isa.lanes())
    llvmd::StoreOp::create(b, loc, value, address, alignment);
  else
    llvmd::MaskedStoreOp::create(b, loc, value, address, mask(count), alignment);
}

void Ir::store_scalar(Value value, Value address) {
  llvmd::StoreOp::create(b, loc, value, address, unsigned(size_of(isa.element)));
}

void Ir::prefetch(Value address, bool write, bool near) {
  llvmd::Prefetch::create(b, loc, address, uint32_t(write ? 1 : 0), uint32_t(near ? 3 : 2), uint32_t(1));
}

Value Ir::scalar(double value) { return arith::ConstantOp::create(b, loc, b.getFloatAttr(element, value)); }
Value Ir::splat(double value) {
  auto type = mlir::cast<mlir::VectorType>(vector);
  return arith::ConstantOp::create(b, loc,
                                   mlir::DenseElementsAttr::get(type, b.getFloatAttr(element, value)));
}
Value Ir::splat(Value scalar) { return vector_dialect::BroadcastOp::create(b, loc, vector, scalar); }

Value Ir::constant_like(Value like, double value) {
  mlir::TypedAttr attribute = b.getFloatAttr(mlir::getElementTypeOrSelf(like), value);
  if (auto type = mlir::dyn_cast<mlir::VectorType>(like.getType()))
    attribute = mlir::DenseElementsAttr::get(type, mlir::Attribute(attribute));
  return arith::ConstantOp::create(b, loc, attribute);
}
Value Ir::broadcast_like(Value scalar, Value like) {
  if (!mlir::isa<mlir::VectorType>(like.getType())) return scalar;
  return vector_dialect::BroadcastOp::create(b, loc, like.getType(), scalar);
}

Value Ir::fma(Value x, Value y, Value z) {
  if (!isa.has_fma()) return addf(mulf(x, y), z);
  if (mlir::isa<mlir::VectorType>(x.getType())) return vector_dialect::FMAOp::create(b, loc, x, y, z);
  return llvmd::FMAOp::create(b, loc, x, y, z);
}
Value Ir::polynomial(Value t, llvm::ArrayRef<double> ascending) {
  Value sum = constant_like(t, ascending.back());
  for (double c : llvm::reverse(ascending.drop_back())) sum = fma(sum, t, constant_like(t, c));
  return sum;
}
Value Ir::addf(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
Value Ir::subf(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
Value Ir::mulf(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
Value Ir::divf(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }

Value Ir::shuffle(Value x, Value y, llvm::ArrayRef<int64_t> lanes) {
  return vector_dialect::ShuffleOp::create(b, loc, x, y, lanes);
}
Value Ir::sum_lanes(Value x) {
  // Reassociation is what makes this a shuffle tree instead of a chain of scalar additions.
  return vector_dialect::ReductionOp::create(b, loc, vector_dialect::CombiningKind::ADD, x,
                                             arith::FastMathFlags::reassoc);
}
Value Ir::sum_lanes_by_halves(Value x) {
  for (int64_t lanes = mlir::cast<mlir::VectorType>(x.getType()).getNumElements(); lanes > 1; lanes /= 2) {
    llvm::SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < lanes / 2; ++i) low.push_back(i), high.push_back(lanes / 2 + i);
    x = addf(shuffle(x, x, low), shuffle(x, x, high));
  }
  return vector_dialect::ExtractOp::create(b, loc, x, int64_t(0));
}
Value Ir::insert(Value scalar, Value into, int64_t lane) {
  return vector_dialect::InsertOp::create(b, loc, scalar, into, lane);
}
Value Ir::is_not(Value x, double value) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x, constant_like(x, value));
}

Values Ir::loop(Value from, Value to, Value step, mlir::ValueRange carried, const Body& body) {
  auto op =
      scf::ForOp::create(b, loc, from, to, step, carried,
                         [&](mlir::OpBuilder& inner, mlir::Location, Value index, mlir::ValueRange values) {
                           mlir::OpBuilder outer = b;
                           b = inner;
                           Values next = body(index, values);
                           scf::YieldOp::create(b, loc, next);
                           b = outer;
                         });
  return Values(op.getResults());
}

Values Ir::loop(Value from, Value to, int64_t step, mlir::ValueRange carried, const Body& body) {
  return loop(from, to, constant_like(from, step), carried, body);
}

void Ir::loop(Value from, Value to, int64_t step, const std::function<void(Value)>& body) {
  loop(from, to, step, {}, [&](Value index, mlir::ValueRange) {
    body(index);
    return Values();
  });
}

Values Ir::branch(Value condition, mlir::TypeRange types, const std::function<Values()>& yes,
                  const std::function<Values()>& no) {
  auto op = scf::IfOp::create(b, loc, types, condition, true, true);
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  scf::YieldOp::create(b, loc, yes());
  b.setInsertionPointToStart(op.elseBlock());
  scf::YieldOp::create(b, loc, no());
  return Values(op.getResults());
}

void Ir::branch(Value condition, const std::function<void()>& yes, const std::function<void()>& no) {
  auto op = scf::IfOp::create(b, loc, condition, bool(no));
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  yes();
  if (!no) return;
  b.setInsertionPointToStart(op.elseBlock());
  no();
}

void Ir::choose(Value x, int64_t from, int64_t to, const std::function<void(int64_t)>& body) {
  if (from == to) return body(to);
  branch(equal(x, constant(from)), [&] { body(from); }, [&] { choose(x, from + 1, to, body); });
}

void Ir::function(const std::string& name, llvm::ArrayRef<mlir::Type> parameters, bool is_private,
                  const std::function<void(mlir::ValueRange)>& body) {
  if (module_.lookupSymbol(name)) return;
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module_.getBody());
  auto op = func::FuncOp::create(b, loc, name, b.getFunctionType(parameters, {}));
  llvm::SmallVector<mlir::Attribute> attributes = {b.getStringAttr("nounwind")};
  if (is_private) {
    op.setPrivate();
    op->setAttr("llvm.linkage", llvmd::LinkageAttr::get(b.getContext(), llvmd::Linkage::Internal));
    attributes.push_back(b.getStringAttr("noinline"));
  }
  op->setAttr("passthrough", b.getArrayAttr(attributes));
  b.setInsertionPointToStart(op.addEntryBlock());
  body(op.getArguments());
  func::ReturnOp::create(b, loc);
}

void Ir::call(const std::string& name, mlir::ValueRange arguments) {
  func::CallOp::create(b, loc, name, mlir::TypeRange{}, arguments);
}

} // namespace deepgen
