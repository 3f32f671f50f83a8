#include "templates/ir/gpu_ir.h"

#include "base/problem/signature.h"
#include "runtime/include/deepgen/kernel_abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace deepgen {

namespace arith = mlir::arith;
namespace llvmd = mlir::LLVM;
namespace scf = mlir::scf;

std::vector<std::string> gpu_arguments(const Gemm& p, bool workspace) {
  static constexpr const char* kOrder[] = {DEEPGEN_ARG_NAMES};
  std::vector<std::string> used, out;
  if (workspace) used.push_back("workspace");
  for (const Operand& x : signature(p)) {
    used.push_back(x.name);
    if (!x.is_matrix()) continue;
    used.push_back(x.leading_dimension());
    if (x.entries > 1) used.push_back(x.stride());
  }
  for (size_t i = 0; i < size_count; ++i)
    if (p.ranged(Size(i))) used.push_back(size_names[i]);
  for (const char* name : kOrder)
    if (llvm::is_contained(used, name)) out.push_back(name);
  return out;
}

std::vector<std::string> gpu_arguments(const Rows& p) {
  std::vector<std::string> pointers, numbers;
  for (const Operand& x : signature(p)) {
    (x.in_memory() ? pointers : numbers).push_back(x.name);
    if (x.is_matrix()) numbers.push_back(x.leading_dimension());
  }
  pointers.insert(pointers.end(), numbers.begin(), numbers.end());
  return pointers;
}

std::vector<std::string> gpu_arguments(const Attention& p) {
  std::vector<std::string> pointers, numbers = {"m", "n"}, scalars = {"score_scale"};
  for (const Operand& x : signature(p)) {
    const std::string name = x.name;
    (x.in_memory() ? pointers : scalars).push_back(name);
    if (x.role == Operand::Role::table && x.rows_by)
      numbers.push_back(name + "_stride");
    else if (x.rows_by)
      for (const char* stride : {name == "bias" ? "_query" : "_token", "_head", "_batch"})
        numbers.push_back(name + stride);
  }
  if (p.mask == AttentionMask::window) numbers.insert(numbers.end(), {"window_left", "window_right"});
  for (const auto* more : {&numbers, &scalars}) pointers.insert(pointers.end(), more->begin(), more->end());
  return pointers;
}

GpuIr::GpuIr(mlir::ModuleOp module)
    : Ir(module, {3, Type::f32}), i8(b.getI8Type()), i16(b.getI16Type()), i32(b.getI32Type()),
      f16(b.getF16Type()), bf16(b.getBF16Type()), f32(b.getF32Type()), f64(b.getF64Type()),
      global(llvmd::LLVMPointerType::get(b.getContext(), 1)),
      shared(llvmd::LLVMPointerType::get(b.getContext(), 3)), module_(module) {}

mlir::Type GpuIr::memory_type(Type type) const {
  switch (type) {
  case Type::f64:
    return f64;
  case Type::f16:
    return f16;
  case Type::bf16:
    return bf16;
  case Type::i32:
    return i32;
  case Type::i8:
  case Type::e4m3:
  case Type::e5m2:
    return i8;
  default:
    return f32;
  }
}

mlir::Type GpuIr::lanes(int64_t n, mlir::Type type) const {
  return n == 1 ? type : mlir::Type(mlir::VectorType::get({n}, type));
}

mlir::Type GpuIr::argument_type(Type scalar, const std::string& name) {
  if (name.rfind("ld", 0) == 0 || name.rfind("stride_", 0) == 0) return i64;
  if (llvm::is_contained(size_names, name)) return i64;
  for (const char* end : {"_token", "_query", "_head", "_batch", "_table_stride"})
    if (llvm::StringRef(name).ends_with(end)) return i64;
  if (name == "window_left" || name == "window_right") return i64;
  if (name == "score_scale" || name == "softcap") return f32;
  if (name == "alpha" || name == "beta" || name == "epsilon" || name.rfind("clamp_", 0) == 0)
    return memory_type(scalar);
  if (name.rfind("map_", 0) == 0) return pointer;
  return global;
}

GpuIr::Parameters GpuIr::parameters_of(Type scalar, const std::vector<std::string>& names) {
  Parameters out;
  for (const std::string& name : names) out.emplace_back(name, argument_type(scalar, name));
  return out;
}

void GpuIr::kernel(const GpuEntry& entry, const Gemm& p, const std::vector<std::string>& names,
                   const std::function<void(const Arguments&)>& body) {
  define(entry, parameters_of(p.scale_type(), names), body);
}

void GpuIr::kernel(const GpuEntry& entry, const Rows&, const std::vector<std::string>& names,
                   const std::function<void(const Arguments&)>& body) {
  define(entry, parameters_of(Type::f32, names), body);
}

void GpuIr::kernel(const GpuEntry& entry, const Attention&, const std::vector<std::string>& names,
                   const std::function<void(const Arguments&)>& body) {
  define(entry, parameters_of(Type::f32, names), body);
}

Value GpuIr::lane() { return bit_and(thread(), 31); }

Value GpuIr::c(int64_t value) { return c(i32, value); }
Value GpuIr::c(mlir::Type type, int64_t value) { return arith::ConstantIntOp::create(b, loc, type, value); }
Value GpuIr::divide(Value x, int64_t y) {
  return y == 1 ? x : Value(arith::DivUIOp::create(b, loc, x, c(x.getType(), y)));
}
Value GpuIr::divide(Value x, Value y) { return arith::DivUIOp::create(b, loc, x, y); }
Value GpuIr::remainder(Value x, int64_t y) { return arith::RemUIOp::create(b, loc, x, c(x.getType(), y)); }
Value GpuIr::remainder(Value x, Value y) { return arith::RemUIOp::create(b, loc, x, y); }
Value GpuIr::bit_and(Value x, int64_t y) { return bit_and(x, c(x.getType(), y)); }
Value GpuIr::bit_and(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
Value GpuIr::bit_or(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
Value GpuIr::bit_xor(Value x, Value y) { return arith::XOrIOp::create(b, loc, x, y); }
Value GpuIr::bit_xor(Value x, int64_t y) { return y == 0 ? x : bit_xor(x, c(x.getType(), y)); }
Value GpuIr::shift_left(Value x, int64_t y) {
  return y == 0 ? x : Value(arith::ShLIOp::create(b, loc, x, c(x.getType(), y)));
}
Value GpuIr::shift_left(Value x, Value y) { return arith::ShLIOp::create(b, loc, x, y); }
Value GpuIr::shift_right_bits(Value x, int64_t y) {
  return y == 0 ? x : Value(arith::ShRUIOp::create(b, loc, x, c(x.getType(), y)));
}
Value GpuIr::wrapping_add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value GpuIr::max(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
Value GpuIr::less(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y); }
Value GpuIr::less(Value x, int64_t y) { return less(x, c(x.getType(), y)); }
Value GpuIr::at_least(Value x, int64_t y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, x, c(x.getType(), y));
}
Value GpuIr::both(Value x, Value y) { return bit_and(x, y); }
Value GpuIr::to_i64(Value x) {
  return x.getType() == i64 ? x : Value(arith::ExtUIOp::create(b, loc, i64, x));
}
Value GpuIr::to_i32(Value x) {
  return x.getType() == i32 ? x : Value(arith::TruncIOp::create(b, loc, i32, x));
}

Value GpuIr::to_i16(Value x) { return arith::TruncIOp::create(b, loc, i16, x); }

Value GpuIr::c(const SizeValue& x) { return x.is_constant() ? c(x.constant()) : to_i32(x.value()); }
Value GpuIr::mul(Value x, const SizeValue& y) {
  if (y.is_constant()) return mul(x, y.constant());
  return mul(x, x.getType() == i64 ? to_i64(y.value()) : y.value());
}
Value GpuIr::divide(Value x, const SizeValue& y) {
  return y.is_constant() ? divide(x, y.constant()) : divide(x, y.value());
}
Value GpuIr::remainder(Value x, const SizeValue& y) {
  return y.is_constant() ? remainder(x, y.constant()) : remainder(x, y.value());
}
Value GpuIr::less(Value x, const SizeValue& y) {
  return y.is_constant() ? less(x, y.constant()) : less(x, y.value());
}
SizeValue GpuIr::product(const SizeValue& x, const SizeValue& y) {
  if (x.is_constant() && y.is_constant()) return x.constant() * y.constant();
  if (x.is_constant()) return product(y, x);
  if (y.is_constant()) return mul(x.value(), y.constant());
  const bool is_wide = x.value().getType() == i64 || y.value().getType() == i64;
  return is_wide ? mul(to_i64(x.value()), to_i64(y.value())) : mul(x.value(), y.value());
}
SizeValue GpuIr::sum(const SizeValue& x, const SizeValue& y) {
  if (x.is_constant() && y.is_constant()) return x.constant() + y.constant();
  return y.is_constant()   ? add(x.value(), y.constant())
         : x.is_constant() ? sum(y, x)
                           : add(x.value(), y.value());
}
SizeValue GpuIr::sub(const SizeValue& x, int64_t y) {
  if (x.is_constant()) return x.constant() - y;
  return y == 0 ? x : SizeValue(sub(x.value(), constant_like(x.value(), y)));
}
SizeValue GpuIr::tiles(const SizeValue& size, int64_t step) {
  if (size.is_constant()) return (size.constant() + step - 1) / step;
  return divide(add(size.value(), step - 1), step);
}
Value GpuIr::tiles_in_turn(const SizeValue& tiles, Value first, int64_t parts) {
  // In this order, as add() must not overflow: `first` may be more than `tiles`.
  if (!tiles.is_constant()) return divide(sub(add(tiles.value(), parts - 1), first), parts);
  const int64_t most = tiles.constant() / parts, longer = tiles.constant() % parts;
  if (longer == 0) return c(most);
  Value count = c(most + 1);
  return select(less(first, longer), count, c(most));
}
SizeValue GpuIr::wide(const SizeValue& x) { return x.is_constant() ? x : SizeValue(to_i64(x.value())); }

Value GpuIr::offset(Value base, const SizeValue& bytes) {
  return bytes.is_constant() ? offset(base, bytes.constant()) : offset(base, bytes.value());
}
Value GpuIr::offset(Value base, Value bytes) {
  return llvmd::GEPOp::create(b, loc, base.getType(), i8, base, mlir::ValueRange{bytes},
                              llvmd::GEPNoWrapFlags::inbounds);
}
Value GpuIr::offset(Value base, int64_t bytes) {
  if (bytes == 0) return base;
  if (bytes != int32_t(bytes)) return offset(base, constant(bytes));
  return llvmd::GEPOp::create(b, loc, base.getType(), i8, base, llvm::ArrayRef<llvmd::GEPArg>{int32_t(bytes)},
                              llvmd::GEPNoWrapFlags::inbounds);
}

int64_t GpuIr::bytes_of(mlir::Type type) {
  int64_t count = 1;
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
    count = vector.getNumElements(), type = vector.getElementType();
  return count * type.getIntOrFloatBitWidth() / 8;
}

void GpuIr::store(Value value, Value address, int64_t alignment) {
  llvmd::StoreOp::create(b, loc, value, address, unsigned(alignment));
}

Value GpuIr::shuffle_xor(Value x, int64_t lane_mask) {
  if (bytes_of(x.getType()) == 8) {
    Values halves;
    for (Value half : unpack(bitcast(lanes(2, i32), x))) halves.push_back(shuffle_xor(half, lane_mask));
    return bitcast(x.getType(), pack(halves));
  }
  return shuffle_word_xor(x, lane_mask);
}

Values GpuIr::rolled_loop(Value from, Value to, Value step, mlir::ValueRange carried, const Body& body) {
  Values out = loop(from, to, step, carried, body);
  // scf -> cf -> llvm keeps an attribute of this name on the loop's back edge.
  auto context = b.getContext();
  auto unroll = llvmd::LoopUnrollAttr::get(context, b.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  auto peel = llvmd::LoopPeeledAttr::get(context, b.getI32IntegerAttr(0));
  auto annotation = llvmd::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {}, peel, {}, {},
                                                   {}, {}, {}, {});
  auto previous = std::prev(b.getInsertionPoint());
  previous->setAttr("loop_annotation", annotation);
  return out;
}
Values GpuIr::rolled_loop(Value from, Value to, int64_t step, mlir::ValueRange carried, const Body& body) {
  return rolled_loop(from, to, constant_like(from, step), carried, body);
}
void GpuIr::rolled_loop(Value from, Value to, int64_t step, const std::function<void(Value)>& body) {
  rolled_loop(from, to, step, {}, [&](Value index, mlir::ValueRange) {
    body(index);
    return Values();
  });
}

Values GpuIr::sums_of(Value tiles, size_t count, mlir::Type type, const std::function<Values()>& sum) {
  return branch(at_least(tiles, 1), llvm::SmallVector<mlir::Type>(count, type), sum,
                [&] { return Values(count, zero(type)); });
}

} // namespace deepgen
