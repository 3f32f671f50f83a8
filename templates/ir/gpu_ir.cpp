#include "templates/ir/gpu_ir.h"

#include "base/kernel/device.h"
#include "base/problem/signature.h"
#include "base/text/error.h"
#include "runtime/include/deepgen/kernel_abi.h"
#include "templates/ir/ir_record.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <array>

namespace deepgen {

namespace arith = mlir::arith;
namespace llvmd = mlir::LLVM;
namespace nvvm = mlir::NVVM;
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

GpuIr::GpuIr(mlir::ModuleOp module) : GpuIr(module, int64_t(0)) {}

GpuIr::GpuIr(mlir::ModuleOp module, const std::string& target) : GpuIr(module, compute_capability(target)) {
  if (capability < 80) throw Error("no GPU target: '" + target + "'");
}

GpuIr::GpuIr(mlir::ModuleOp module, int64_t target_capability)
    : Ir(module, {3, Type::f32}), capability(target_capability), i8(b.getI8Type()), i16(b.getI16Type()),
      i32(b.getI32Type()), f16(b.getF16Type()), bf16(b.getBF16Type()), f32(b.getF32Type()),
      f64(b.getF64Type()), global(llvmd::LLVMPointerType::get(b.getContext(), 1)),
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

void GpuIr::define(const GpuEntry& entry, const Parameters& parameters,
                   const std::function<void(const Arguments&)>& body) {
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module_.getBody());
  llvm::SmallVector<mlir::Type> types;
  for (const auto& [name, type] : parameters) types.push_back(type);
  auto type = llvmd::LLVMFunctionType::get(llvmd::LLVMVoidType::get(b.getContext()), types);
  auto function = llvmd::LLVMFuncOp::create(b, loc, entry.name, type);
  function->setAttr("nvvm.kernel", b.getUnitAttr());
  function->setAttr("nvvm.reqntid", b.getDenseI32ArrayAttr({int32_t(entry.threads), 1, 1}));
  function->setAttr("nvvm.minctasm", b.getI32IntegerAttr(int32_t(entry.min_blocks)));
  if (entry.max_registers)
    function->setAttr("nvvm.maxnreg", b.getI32IntegerAttr(int32_t(entry.max_registers)));
  if (entry.cluster != std::array<int64_t, 3>{1, 1, 1})
    function->setAttr("nvvm.cluster_dim",
                      b.getDenseI32ArrayAttr(
                          {int32_t(entry.cluster[0]), int32_t(entry.cluster[1]), int32_t(entry.cluster[2])}));
  b.setInsertionPointToStart(function.addEntryBlock(b));
  Arguments arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].first;
    arguments[name] = function.getArgument(unsigned(i));
    if (name.rfind("map_", 0) != 0) continue;
    // A tensor map is passed by value; without grid_constant LLVM would copy it to local memory.
    auto bytes = llvmd::LLVMArrayType::get(i8, 128);
    function.setArgAttr(unsigned(i), "llvm.byval", mlir::TypeAttr::get(bytes));
    function.setArgAttr(unsigned(i), "nvvm.grid_constant", b.getUnitAttr());
    function.setArgAttr(unsigned(i), "llvm.align", b.getI32IntegerAttr(64));
  }
  body(arguments);
  llvmd::ReturnOp::create(b, loc, mlir::ValueRange{});
}

Value GpuIr::shared_memory() {
  constexpr const char* kName = "deepgen_shared";
  if (!module_.lookupSymbol(kName)) {
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module_.getBody());
    llvmd::GlobalOp::create(b, loc, llvmd::LLVMArrayType::get(i8, 0), false, llvmd::Linkage::External, kName,
                            mlir::Attribute(), 1024, 3);
  }
  return llvmd::AddressOfOp::create(b, loc, shared, kName);
}

Value GpuIr::thread() { return nvvm::ThreadIdXOp::create(b, loc, i32); }
Value GpuIr::block_x() { return nvvm::BlockIdXOp::create(b, loc, i32); }
Value GpuIr::block_y() { return nvvm::BlockIdYOp::create(b, loc, i32); }
Value GpuIr::lane() { return bit_and(thread(), 31); }
Value GpuIr::warp() { return shuffle_index(shift_right_bits(thread(), 5), c(0)); }

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

namespace {

int64_t bytes_of(mlir::Type type) {
  int64_t count = 1;
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
    count = vector.getNumElements(), type = vector.getElementType();
  return count * type.getIntOrFloatBitWidth() / 8;
}

} // namespace

Value GpuIr::load_global(mlir::Type type, Value address, int64_t alignment, CachePolicy cache) {
  const int64_t bytes = bytes_of(type);
  if (cache == CachePolicy::usual || alignment < bytes || bytes > 16) return load(type, address, alignment);
  std::string text = cache == CachePolicy::passing ? "ld.global" : "ld.global.nc";
  if (cache != CachePolicy::read_only) text += ".L1::no_allocate";
  const Values operands = {address};
  if (cache != CachePolicy::read_only && bytes >= 4) text += ".L2::256B";
  // Volatile: it stays behind griddepcontrol.wait.
  if (bytes <= 4) {
    const bool word = bytes == 4;
    text += word ? ".b32 $0, [$1]" : bytes == 2 ? ".b16 $0, [$1]" : ".b8 $0, [$1]";
    Value raw = assembly(word ? i32 : i16, text + ";", word ? "=r,l" : "=h,l", operands, true);
    if (bytes == 1) raw = arith::TruncIOp::create(b, loc, i8, raw);
    return bitcast(type, raw);
  }
  const int64_t words = bytes / 4;
  if (words == 3 || words * 4 != bytes) return load(type, address, alignment);
  mlir::Type record = record_of(words, i32);
  text += words == 2 ? ".v2.b32 {$0,$1}, [$2];" : ".v4.b32 {$0,$1,$2,$3}, [$4];";
  Value raw = assembly(record, text, words == 2 ? "=r,=r,l" : "=r,=r,=r,=r,l", operands, true);
  return bitcast(type, pack(fields_of(*this, raw)));
}

void GpuIr::store(Value value, Value address, int64_t alignment) {
  llvmd::StoreOp::create(b, loc, value, address, unsigned(alignment));
}

void GpuIr::copy_async(Value to, Value from, int64_t bytes, Value valid) {
  // Whole 16 bytes bypass L1 (cg); the smaller sizes exist through L1 only (ca).
  const auto modifier = bytes == 16 ? nvvm::LoadCacheModifierKind::CG : nvvm::LoadCacheModifierKind::CA;
  nvvm::CpAsyncOp::create(b, loc, to, from, uint32_t(bytes), modifier, valid);
}

void GpuIr::copy_async_if(Value wanted, Value to, Value from, int64_t bytes, Value valid) {
  const std::string size = std::to_string(bytes), modifier = bytes == 16 ? "cg" : "ca";
  Values operands = {wanted, to, from};
  if (valid) operands.push_back(valid);
  assembly(nullptr,
           "@$0 cp.async." + modifier + ".shared.global [$1], [$2], " + size + (valid ? ", $3;" : ";"),
           valid ? "b,r,l,r" : "b,r,l", operands, true);
}

void GpuIr::commit_copies() { nvvm::CpAsyncCommitGroupOp::create(b, loc); }
void GpuIr::wait_copies(int64_t groups) { nvvm::CpAsyncWaitGroupOp::create(b, loc, uint32_t(groups)); }

Values GpuIr::load_matrix(Value address, int64_t count, bool transposed) {
  const auto layout = transposed ? nvvm::MMALayout::col : nvvm::MMALayout::row;
  mlir::Type type = count > 1 ? record_of(count, i32) : i32;
  auto shape = nvvm::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value raw = nvvm::LdMatrixOp::create(b, loc, type, address, uint32_t(count), layout, shape,
                                       nvvm::LdStMatrixEltType::B16);
  if (count == 1) return {raw};
  return fields_of(*this, raw);
}

void GpuIr::barrier() { nvvm::Barrier0Op::create(b, loc); }
void GpuIr::warp_barrier() { nvvm::SyncWarpOp::create(b, loc, c(-1)); }

Value GpuIr::shuffle_xor(Value x, int64_t lane_mask) {
  if (bytes_of(x.getType()) == 8) {
    Values halves;
    for (Value half : unpack(bitcast(lanes(2, i32), x))) halves.push_back(shuffle_xor(half, lane_mask));
    return bitcast(x.getType(), pack(halves));
  }
  return shuffle_word_xor(x, lane_mask);
}
Value GpuIr::shuffle_word_xor(Value x, int64_t lane_mask) {
  return nvvm::ShflOp::create(b, loc, x.getType(), c(-1), x, c(lane_mask), c(31), nvvm::ShflKind::bfly,
                              mlir::UnitAttr());
}
Value GpuIr::shuffle_index(Value x, Value from) {
  return nvvm::ShflOp::create(b, loc, x.getType(), c(-1), x, from, c(31), nvvm::ShflKind::idx,
                              mlir::UnitAttr());
}
void GpuIr::prefetch(Value address) { assembly(nullptr, "prefetch.global.L2 [$0];", "l", address, true); }
void GpuIr::wait_for_predecessor() {
  if (capability >= 90) nvvm::GriddepcontrolOp::create(b, loc, nvvm::GridDepActionKind::wait);
}
void GpuIr::launch_dependents() {
  if (capability >= 90) nvvm::GriddepcontrolOp::create(b, loc, nvvm::GridDepActionKind::launch_dependents);
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

Value GpuIr::assembly(mlir::Type result, const std::string& text, const std::string& constraints,
                      mlir::ValueRange operands, bool side_effects) {
  llvm::SmallVector<mlir::Type> results;
  if (result) results.push_back(result);
  auto op = llvmd::InlineAsmOp::create(
      b, loc, results, operands, text, constraints + (side_effects ? ",~{memory}" : ""), side_effects, false,
      llvmd::tailcallkind::TailCallKind::None, llvmd::AsmDialectAttr(), mlir::ArrayAttr());
  return result ? op.getResult(0) : Value();
}

} // namespace deepgen
