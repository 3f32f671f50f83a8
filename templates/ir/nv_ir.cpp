#include "templates/ir/nv_ir.h"

#include "base/kernel/device.h"
#include "base/text/error.h"
#include "templates/ir/ir_record.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <array>

namespace deepgen {

namespace arith = mlir::arith;
namespace llvmd = mlir::LLVM;
namespace nvvm = mlir::NVVM;

NvIr::NvIr(mlir::ModuleOp module, const std::string& target)
    : GpuIr(module), capability(compute_capability(target)) {
  if (capability < 80) throw Error("no GPU target: '" + target + "'");
}

void NvIr::define(const GpuEntry& entry, const Parameters& parameters,
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
    const auto count = map_counts_.find(name);
    auto bytes = llvmd::LLVMArrayType::get(i8, 128 * (count == map_counts_.end() ? 1 : count->second));
    function.setArgAttr(unsigned(i), "llvm.byval", mlir::TypeAttr::get(bytes));
    function.setArgAttr(unsigned(i), "nvvm.grid_constant", b.getUnitAttr());
    function.setArgAttr(unsigned(i), "llvm.align", b.getI32IntegerAttr(64));
  }
  body(arguments);
  llvmd::ReturnOp::create(b, loc, mlir::ValueRange{});
}

Value NvIr::shared_memory() {
  constexpr const char* kName = "deepgen_shared";
  if (!module_.lookupSymbol(kName)) {
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module_.getBody());
    llvmd::GlobalOp::create(b, loc, llvmd::LLVMArrayType::get(i8, 0), false, llvmd::Linkage::External, kName,
                            mlir::Attribute(), 1024, 3);
  }
  return llvmd::AddressOfOp::create(b, loc, shared, kName);
}

Value NvIr::thread() { return nvvm::ThreadIdXOp::create(b, loc, i32); }
Value NvIr::block_x() { return nvvm::BlockIdXOp::create(b, loc, i32); }
Value NvIr::grid_x() { return nvvm::GridDimXOp::create(b, loc, i32); }
Value NvIr::block_y() { return nvvm::BlockIdYOp::create(b, loc, i32); }
Value NvIr::block_z() { return nvvm::BlockIdZOp::create(b, loc, i32); }
Value NvIr::warp() { return shuffle_index(shift_right_bits(thread(), 5), c(0)); }

Value NvIr::load_global(mlir::Type type, Value address, int64_t alignment, CachePolicy cache) {
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

void NvIr::copy_async(Value to, Value from, int64_t bytes, Value valid) {
  // Whole 16 bytes bypass L1 (cg); the smaller sizes exist through L1 only (ca).
  const auto modifier = bytes == 16 ? nvvm::LoadCacheModifierKind::CG : nvvm::LoadCacheModifierKind::CA;
  nvvm::CpAsyncOp::create(b, loc, to, from, uint32_t(bytes), modifier, valid);
}

void NvIr::copy_async_if(Value wanted, Value to, Value from, int64_t bytes, Value valid) {
  const std::string size = std::to_string(bytes), modifier = bytes == 16 ? "cg" : "ca";
  Values operands = {wanted, to, from};
  if (valid) operands.push_back(valid);
  assembly(nullptr,
           "@$0 cp.async." + modifier + ".shared.global [$1], [$2], " + size + (valid ? ", $3;" : ";"),
           valid ? "b,r,l,r" : "b,r,l", operands, true);
}

void NvIr::commit_copies() { nvvm::CpAsyncCommitGroupOp::create(b, loc); }
void NvIr::wait_copies(int64_t groups) { nvvm::CpAsyncWaitGroupOp::create(b, loc, uint32_t(groups)); }

Values NvIr::load_matrix(Value address, int64_t count, bool transposed) {
  const auto layout = transposed ? nvvm::MMALayout::col : nvvm::MMALayout::row;
  mlir::Type type = count > 1 ? record_of(count, i32) : i32;
  auto shape = nvvm::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value raw = nvvm::LdMatrixOp::create(b, loc, type, address, uint32_t(count), layout, shape,
                                       nvvm::LdStMatrixEltType::B16);
  if (count == 1) return {raw};
  return fields_of(*this, raw);
}

void NvIr::barrier() { nvvm::Barrier0Op::create(b, loc); }
void NvIr::warp_barrier() { nvvm::SyncWarpOp::create(b, loc, c(-1)); }

Value NvIr::any_lane(Value condition) {
  return nvvm::VoteSyncOp::create(b, loc, i1, c(-1), condition, nvvm::VoteSyncKind::any);
}

Value NvIr::shuffle_word_xor(Value x, int64_t lane_mask) {
  return nvvm::ShflOp::create(b, loc, x.getType(), c(-1), x, c(lane_mask), c(31), nvvm::ShflKind::bfly,
                              mlir::UnitAttr());
}
Value NvIr::shuffle_index(Value x, Value from) {
  return nvvm::ShflOp::create(b, loc, x.getType(), c(-1), x, from, c(31), nvvm::ShflKind::idx,
                              mlir::UnitAttr());
}
void NvIr::prefetch(Value address) { assembly(nullptr, "prefetch.global.L2 [$0];", "l", address, true); }
void NvIr::wait_for_predecessor() {
  if (launches_early()) nvvm::GriddepcontrolOp::create(b, loc, nvvm::GridDepActionKind::wait);
}
void NvIr::launch_dependents() {
  if (launches_early()) nvvm::GriddepcontrolOp::create(b, loc, nvvm::GridDepActionKind::launch_dependents);
}

Value NvIr::decode_pair(Type from, Value x) {
  if (capability < 89) return GpuIr::decode_pair(from, x);
  mlir::Type type = from == Type::e4m3 ? mlir::Type(mlir::Float8E4M3FNType::get(b.getContext()))
                                       : mlir::Type(mlir::Float8E5M2Type::get(b.getContext()));
  return convert(f32, nvvm::ConvertF8x2ToF16x2Op::create(b, loc, lanes(2, f16), x, false, type));
}

Value NvIr::encode_e4m3(Value x) {
  const auto vector = mlir::dyn_cast<mlir::VectorType>(x.getType());
  if (capability < 89 || !vector || vector.getNumElements() % 2) return GpuIr::encode_e4m3(x);
  Values all, parts = unpack(x);
  for (size_t i = 0; i < parts.size(); i += 2) {
    Value pair =
        assembly(i16, "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", "=h,f,f", {parts[i + 1], parts[i]}, false);
    for (Value part : unpack(bitcast(lanes(2, i8), pair))) all.push_back(part);
  }
  return pack(all);
}

Value NvIr::round_to_i8(Value x) {
  Value raw = assembly(i32, "cvt.rni.sat.s8.f32 $0, $1;", "=r,f", x, false);
  return arith::TruncIOp::create(b, loc, i8, raw);
}

Value NvIr::round_tf32(Value x) {
  return bitcast(f32, nvvm::ConvertFloatToTF32Op::create(b, loc, i32, x, nvvm::FPRoundingMode::RNA));
}

Value NvIr::log2_fast(Value x) { return assembly(f32, "lg2.approx.f32 $0, $1;", "=f,f", x, false); }
Value NvIr::exp2_fast(Value x) { return assembly(f32, "ex2.approx.ftz.f32 $0, $1;", "=f,f", x, false); }
Value NvIr::reciprocal_fast(Value x) { return assembly(f32, "rcp.approx.ftz.f32 $0, $1;", "=f,f", x, false); }
Value NvIr::dot4(Value x, Value y, Value sum) {
  return assembly(i32, "dp4a.s32.s32 $0, $1, $2, $3;", "=r,r,r,r", {x, y, sum}, false);
}

Value NvIr::assembly(mlir::Type result, const std::string& text, const std::string& constraints,
                     mlir::ValueRange operands, bool side_effects) {
  llvm::SmallVector<mlir::Type> results;
  if (result) results.push_back(result);
  auto op = llvmd::InlineAsmOp::create(
      b, loc, results, operands, text, constraints + (side_effects ? ",~{memory}" : ""), side_effects, false,
      llvmd::tailcallkind::TailCallKind::None, llvmd::AsmDialectAttr(), mlir::ArrayAttr());
  return result ? op.getResult(0) : Value();
}

} // namespace deepgen
