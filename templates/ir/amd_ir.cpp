#include "templates/ir/amd_ir.h"

#include "base/text/error.h"
#include "templates/core/sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

namespace deepgen {

namespace arith = mlir::arith;
namespace llvmd = mlir::LLVM;
namespace rocdl = mlir::ROCDL;

namespace {

const AmdArch& known(const std::string& target) {
  const AmdArch* arch = find_amd(target);
  if (!arch) throw Error("no AMD GPU target: '" + target + "'", "", "", "use one of " + amd_archs());
  return *arch;
}

constexpr const char* kNoBlockZ = "amdgpu-no-workgroup-id-z"; // some entries ask for it
/// What the runtime could pass beside the parameters, and no other kernel of ours asks for.
constexpr const char* kUnused[] = {"amdgpu-no-dispatch-ptr",
                                   "amdgpu-no-queue-ptr",
                                   "amdgpu-no-dispatch-id",
                                   "amdgpu-no-implicitarg-ptr",
                                   "amdgpu-no-workitem-id-y",
                                   "amdgpu-no-workitem-id-z",
                                   kNoBlockZ,
                                   "amdgpu-no-default-queue",
                                   "amdgpu-no-heap-ptr",
                                   "amdgpu-no-hostcall-ptr",
                                   "amdgpu-no-completion-action",
                                   "amdgpu-no-multigrid-sync-arg",
                                   "amdgpu-no-lds-kernel-id"};

} // namespace

AmdIr::AmdIr(mlir::ModuleOp module, const std::string& name)
    : GpuIr(module), arch(known(name)), target(name) {}

/// Of the entry whose body has been made.
mlir::ArrayAttr AmdIr::attributes_of(const GpuEntry& entry) {
  llvm::SmallVector<mlir::Attribute> attributes;
  for (const char* name : kUnused)
    if (name != kNoBlockZ || !has_block_z_) attributes.push_back(b.getStringAttr(name));
  auto pair = [&](const char* name, const std::string& value) {
    attributes.push_back(b.getArrayAttr({b.getStringAttr(name), b.getStringAttr(value)}));
  };
  pair("amdgpu-implicitarg-num-bytes", "0");
  // At least two, where there is LDS for them, so that one hides the other's latencies: on gfx906 that is 128
  // registers.
  const int64_t wanted = ceil_div(entry.min_blocks * ceil_div(entry.threads, arch.wave), AmdArch::simds);
  const int64_t waves = std::max(wanted, std::min<int64_t>(2, arch.waves(1, entry.shared, entry.threads)));
  pair("amdgpu-waves-per-eu", std::to_string(waves));
  // Sums in vector registers: from accumulation registers they would have to be moved, and LLVM moves them
  // within loops.
  if (arch.mfma) pair("amdgpu-agpr-alloc", "0");
  return b.getArrayAttr(attributes);
}

void AmdIr::define(const GpuEntry& entry, const Parameters& parameters,
                   const std::function<void(const Arguments&)>& body) {
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module_.getBody());
  llvm::SmallVector<mlir::Type> types;
  for (const auto& [name, type] : parameters) types.push_back(type);
  auto type = llvmd::LLVMFunctionType::get(llvmd::LLVMVoidType::get(b.getContext()), types);
  auto function = llvmd::LLVMFuncOp::create(b, loc, entry.name, type);
  const std::string threads = std::to_string(entry.threads);
  function->setAttr("rocdl.kernel", b.getUnitAttr());
  function->setAttr("rocdl.flat_work_group_size", b.getStringAttr(threads + "," + threads));
  function->setAttr("rocdl.reqd_work_group_size", b.getDenseI32ArrayAttr({int32_t(entry.threads), 1, 1}));
  shared_bytes_ = entry.shared, has_block_z_ = false;
  b.setInsertionPointToStart(function.addEntryBlock(b));
  Arguments arguments;
  for (size_t i = 0; i < parameters.size(); ++i)
    arguments[parameters[i].first] = function.getArgument(unsigned(i));
  body(arguments);
  llvmd::ReturnOp::create(b, loc, mlir::ValueRange{});
  function->setAttr("passthrough", attributes_of(entry));
}

Value AmdIr::shared_memory() {
  constexpr const char* kName = "deepgen_shared";
  if (shared_bytes_ <= 0) throw Error("an entry uses shared memory but does not say how much");
  if (!module_.lookupSymbol(kName)) {
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module_.getBody());
    auto bytes = llvmd::LLVMArrayType::get(i8, unsigned(shared_bytes_));
    llvmd::GlobalOp::create(b, loc, bytes, false, llvmd::Linkage::Internal, kName, mlir::Attribute(), 1024,
                            3);
  }
  return llvmd::AddressOfOp::create(b, loc, shared, kName);
}

Value AmdIr::thread() { return rocdl::ThreadIdXOp::create(b, loc, i32); }
Value AmdIr::block_x() { return rocdl::BlockIdXOp::create(b, loc, i32); }
Value AmdIr::block_y() { return rocdl::BlockIdYOp::create(b, loc, i32); }
Value AmdIr::block_z() {
  has_block_z_ = true;
  return rocdl::BlockIdZOp::create(b, loc, i32);
}
Value AmdIr::warp() { return shift_right_bits(thread(), 5); }
Value AmdIr::wave() { return uniform(shift_right_bits(thread(), arch.wave == 64 ? 6 : 5)); }
Value AmdIr::wave_lane() { return bit_and(thread(), arch.wave - 1); }
Value AmdIr::uniform(Value x) { return rocdl::ReadfirstlaneOp::create(b, loc, i32, x); }

Value AmdIr::load_global(mlir::Type type, Value address, int64_t alignment, CachePolicy) {
  return load(type, address, alignment);
}

void AmdIr::fence(bool release) {
  auto ordering = release ? llvmd::AtomicOrdering::release : llvmd::AtomicOrdering::acquire;
  auto op = llvmd::FenceOp::create(b, loc, ordering, "workgroup");
  op->setAttr(llvmd::LLVMDialect::getMmraAttrName(),
              llvmd::MMRATagAttr::get(b.getContext(), "amdgpu-synchronize-as", "local"));
}

void AmdIr::barrier() {
  fence(true);
  rocdl::SBarrierOp::create(b, loc);
  fence(false);
}

void AmdIr::keep_order() {
  constexpr int kAllMayCross = 0x7ff;
  rocdl::SchedBarrier::create(b, loc, kAllMayCross);
}

void AmdIr::fence_schedule() { rocdl::SchedBarrier::create(b, loc, 0); }
void AmdIr::priority(int64_t of) { rocdl::SetPrioOp::create(b, loc, uint16_t(of)); }

mlir::ArrayAttr AmdIr::copies() {
  auto domain = llvmd::AliasScopeDomainAttr::get(b.getContext(), b.getStringAttr("shared"), {});
  return b.getArrayAttr(llvmd::AliasScopeAttr::get(b.getContext(), b.getStringAttr("copies"), domain, {}));
}

void AmdIr::copy_to_shared(Value to, Value from, int64_t bytes) {
  auto op = rocdl::GlobalLoadLDSOp::create(b, loc, mlir::TypeRange(), from, to, uint32_t(bytes), 0, 0,
                                           nullptr, nullptr, nullptr);
  op.setAliasScopesAttr(copies());
}

/// Flags: data format 32, which is none of "no buffer"; from gfx10 on also that bounds are checked as a raw
/// buffer's, by bytes (OOB_SELECT 3), and a bit that has to be set.
Value AmdIr::buffer(Value base, Value bytes) {
  constexpr int64_t kFormat = 7 << 12 | 4 << 15, kRaw = 3 << 28 | 1 << 24;
  auto type = llvmd::LLVMPointerType::get(b.getContext(), 8);
  return rocdl::MakeBufferRsrcOp::create(b, loc, type, base, c(i16, 0), to_i64(bytes),
                                         c(kFormat | (arch.wave == 32 ? kRaw : 0)));
}

Value AmdIr::load_buffer(mlir::Type type, Value buffer, Value offset, Value moved) {
  return rocdl::RawPtrBufferLoadOp::create(b, loc, type, buffer, offset, moved, c(0), nullptr, nullptr,
                                           nullptr);
}

void AmdIr::copy_buffer_to_shared(Value to, Value buffer, Value offset, Value moved, int64_t bytes) {
  auto op = rocdl::RawPtrBufferLoadLdsOp::create(b, loc, buffer, to, c(bytes), offset, moved, c(0), c(0),
                                                 nullptr, nullptr, nullptr);
  op.setAliasScopesAttr(copies());
}

/// s_waitcnt of gfx9: vmcnt is in bits 0 to 3, 14 and 15, lgkmcnt in 8 to 11, and expcnt, of no use here, in
/// 4 to 6.
void AmdIr::wait(int64_t loads, int64_t shared_accesses) {
  rocdl::SWaitcntOp::create(b, loc,
                            uint32_t((loads & 15) | loads >> 4 << 14 | shared_accesses << 8 | 7 << 4));
}

void AmdIr::wait_copies(int64_t left) { wait(left, 15); }

void AmdIr::barrier_beside_copies(int64_t left) {
  auto nothing_crosses = [&] {
    llvmd::FenceOp::create(b, loc, llvmd::AtomicOrdering::seq_cst, "singlethread");
  };
  wait(left, 0);
  nothing_crosses();
  rocdl::SBarrierOp::create(b, loc);
  nothing_crosses();
}

Value AmdIr::load_copied(mlir::Type type, Value address, int64_t alignment) {
  auto op = llvmd::LoadOp::create(b, loc, type, address, unsigned(alignment));
  op.setNoaliasScopesAttr(copies());
  return op;
}

Value AmdIr::intrinsic(mlir::Type result, const std::string& name, mlir::ValueRange operands) {
  return llvmd::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name), operands).getResult(0);
}

/// ds_swizzle goes through the LDS's crossbar, in groups of 32 lanes on all archs; its masks are and, or,
/// xor.
Value AmdIr::shuffle_word_xor(Value x, int64_t lane_mask) {
  Value how = c(lane_mask << 10 | 31);
  return bitcast(x.getType(), intrinsic(i32, "llvm.amdgcn.ds.swizzle", {bitcast(i32, x), how}));
}

Value AmdIr::shuffle_wave_xor(Value x, int64_t lane_mask) {
  if (lane_mask < 32) return shuffle_word_xor(x, lane_mask);
  Value from = shift_left(bit_xor(wave_lane(), lane_mask), 2);
  return bitcast(x.getType(), intrinsic(i32, "llvm.amdgcn.ds.bpermute", {from, bitcast(i32, x)}));
}

/// ds_bpermute counts the lanes of a wave, by 4 bytes each.
Value AmdIr::shuffle_index(Value x, Value from) {
  if (arch.wave == 64) from = bit_or(bit_and(thread(), 32), from);
  return bitcast(x.getType(),
                 intrinsic(i32, "llvm.amdgcn.ds.bpermute", {shift_left(from, 2), bitcast(i32, x)}));
}

Value AmdIr::exp2_fast(Value x) { return intrinsic(f32, "llvm.amdgcn.exp2", x); }
Value AmdIr::log2_fast(Value x) { return intrinsic(f32, "llvm.amdgcn.log", x); }
Value AmdIr::reciprocal_fast(Value x) { return intrinsic(f32, "llvm.amdgcn.rcp", x); }

Value AmdIr::dot4(Value x, Value y, Value sum) {
  Value no = c(i1, 0);
  if (arch.wave == 64) return intrinsic(i32, "llvm.amdgcn.sdot4", {x, y, sum, no});
  Value yes = c(i1, 1); // RDNA 3: each operand says that it is signed
  return intrinsic(i32, "llvm.amdgcn.sudot4", {yes, x, yes, y, sum, no});
}

Value AmdIr::dot2(Type type, Value x, Value y, Value sum) {
  mlir::Type pair = lanes(2, memory_type(type));
  return intrinsic(f32, type == Type::bf16 ? "llvm.amdgcn.fdot2.f32.bf16" : "llvm.amdgcn.fdot2",
                   {bitcast(pair, x), bitcast(pair, y), sum, c(i1, 0)});
}

Value AmdIr::round_to_i8(Value x) {
  Value whole = intrinsic(f32, "llvm.rint", x);
  Value wide = intrinsic(i32, "llvm.fptosi.sat", whole); // NaN is 0
  wide = max(min(wide, c(127)), c(-128));
  return arith::TruncIOp::create(b, loc, i8, wide);
}

} // namespace deepgen
