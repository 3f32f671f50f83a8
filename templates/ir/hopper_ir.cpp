#include "templates/ir/hopper_ir.h"

#include "base/text/error.h"
#include "templates/core/sizes.h"
#include "templates/ir/ir_record.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace deepgen {

namespace llvmd = mlir::LLVM;
namespace nvvm = mlir::NVVM;

Value HopperIr::address(Value pointer) { return llvmd::PtrToIntOp::create(b, loc, i32, pointer); }
Value HopperIr::pointer_to(Value address) { return llvmd::IntToPtrOp::create(b, loc, shared, address); }

void HopperIr::barrier_init(Value barrier, int64_t arrivals) {
  assembly(nullptr, "mbarrier.init.shared::cta.b64 [$0], " + text(arrivals) + ";", "r", barrier, true);
}

void HopperIr::fence_barrier_init() {
  assembly(nullptr, "fence.mbarrier_init.release.cluster;", "", {}, true);
}

void HopperIr::arrive(Value barrier) {
  assembly(nullptr, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r", barrier, true);
}

void HopperIr::arrive_expecting(Value barrier, int64_t bytes) {
  assembly(nullptr, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], " + text(bytes) + ";", "r", barrier,
           true);
}

void HopperIr::arrive_expecting(Value barrier, Value bytes) {
  assembly(nullptr, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r", {barrier, bytes}, true);
}

/// Without a scope: one of .cluster becomes a barrier for all memory in each step.
void HopperIr::arrive_at_block(Value barrier, Value block) {
  assembly(nullptr,
           "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, $0, $1; "
           "mbarrier.arrive.shared::cluster.b64 _, [remote]; }",
           "r,r", {barrier, block}, true);
}

void HopperIr::wait(Value barrier, Value parity) {
  assembly(nullptr,
           "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra "
           "again; }",
           "r,r", {barrier, parity}, true);
}

void HopperIr::set_flag(Value pointer) {
  assembly(nullptr, "st.release.gpu.global.b32 [$0], 1;", "l", pointer, true);
}
void HopperIr::await_flag(Value pointer) {
  assembly(nullptr,
           "{ .reg .pred done; .reg .b32 seen; again: ld.acquire.gpu.global.b32 seen, [$0]; setp.eq.b32 "
           "done, seen, 1; "
           "@!done bra again; }",
           "l", pointer, true);
}

Value HopperIr::address_at_block(Value address, Value block) {
  return assembly(i32, "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", {address, block}, false);
}

Value HopperIr::load_from_block(mlir::Type vector, Value address) {
  const int64_t lanes = mlir::cast<mlir::VectorType>(vector).getNumElements();
  std::string registers, constraints;
  for (int64_t i = 0; i < lanes; ++i) registers += (i ? ",$" : "$") + text(i), constraints += "=r,";
  Value raw =
      assembly(record_of(lanes, i32),
               "ld.shared::cluster.v" + text(lanes) + ".b32 {" + registers + "}, [$" + text(lanes) + "];",
               constraints + "r", address, true);
  return bitcast(vector, pack(fields_of(*this, raw)));
}

void HopperIr::load_tile(Value map, Value to, Value barrier, mlir::ValueRange coordinates, Value blocks) {
  std::string at, constraints = "r,l,r";
  Values operands = {to, map, barrier};
  for (size_t i = 0; i < coordinates.size(); ++i) {
    at += (i ? ", $" : "$") + text(int64_t(3 + i));
    constraints += ",r";
    operands.push_back(coordinates[i]);
  }
  std::string text_ = "cp.async.bulk.tensor." + text(int64_t(coordinates.size())) +
                      "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes";
  if (blocks) text_ += ".multicast::cluster";
  text_ += " [$0], [$1, {" + at + "}], [$2]";
  if (blocks)
    text_ += ", $" + text(int64_t(operands.size())), constraints += ",h", operands.push_back(blocks);
  assembly(nullptr, text_ + ";", constraints, operands, true);
}

void HopperIr::store_tile(Value map, Value from, mlir::ValueRange coordinates) {
  std::string at, constraints = "l,r";
  Values operands = {map, from};
  for (size_t i = 0; i < coordinates.size(); ++i) {
    at += (i ? ", $" : "$") + text(int64_t(2 + i));
    constraints += ",r";
    operands.push_back(coordinates[i]);
  }
  assembly(nullptr,
           "cp.async.bulk.tensor." + text(int64_t(coordinates.size())) +
               "d.global.shared::cta.tile.bulk_group [$0, {" + at + "}], [$1];",
           constraints, operands, true);
}

void HopperIr::commit_stores() { assembly(nullptr, "cp.async.bulk.commit_group;", "", {}, true); }
void HopperIr::wait_stores_read(int64_t in_flight) {
  assembly(nullptr, "cp.async.bulk.wait_group.read " + text(in_flight) + ";", "", {}, true);
}
void HopperIr::fence_async() { assembly(nullptr, "fence.proxy.async.shared::cta;", "", {}, true); }

namespace {

const char* type_name(Type t) {
  switch (t) {
  case Type::f16:
    return "f16";
  case Type::bf16:
    return "bf16";
  case Type::tf32:
    return "tf32";
  case Type::e4m3:
    return "e4m3";
  case Type::e5m2:
    return "e5m2";
  case Type::i8:
    return "s8";
  default:
    throw Error("wgmma does not multiply " + to_string(t));
  }
}

constexpr int64_t kStepBytes = 32;   ///< of K in one wgmma
constexpr int64_t kAtomBytes = 1024; ///< 8 rows of 128 bytes, after which the swizzle repeats

/// Everything of a matrix descriptor but the address (PTX ISA, "Matrix Descriptor Format"): the distance of
/// the slices along M or N (bits 16 to 29), that of the groups of 8 rows (bits 32 to 45), both in 16 bytes,
/// and the swizzle by 128 bytes.
uint64_t descriptor(const MatrixOperand& x) {
  const uint64_t leading = x.k_major ? 1 : uint64_t(x.slice_bytes / 16);
  return uint64_t(1) << 62 | uint64_t(kAtomBytes / 16) << 32 | leading << 16;
}

/// Descriptor units (16 bytes) from one step of K to the next.
int64_t step_units(const MatrixOperand& x, int64_t k) { return (x.k_major ? kStepBytes : k * 128) / 16; }

} // namespace

/// All steps of the stage are one piece of assembly: a piece has its sums as operands, which is what LLVM's
/// time goes to.
Values HopperIr::multiply_tiles(const WarpgroupMma& m, const MatrixOperand& a, const MatrixOperand& b_,
                                int64_t a_step, Value accumulate, mlir::ValueRange sums) {
  const bool integers = m.accumulate == Type::i32, halves = size_of(m.a) == 2;
  const int64_t k = kStepBytes / size_of(m.a), count = int64_t(sums.size()), each = m.registers();
  const int64_t steps = m.depth_bytes / kStepBytes;
  const std::string first = text(2 * count); // operands: results, tied sums, then these
  auto operand = [&](int64_t i) { return "$" + text(2 * count + i); };
  std::string code = "{ .reg .pred add, always; .reg .b64 da, db; .reg .b32 low; setp.ne.b32 add, " +
                     operand(2) + ", 0; setp.eq.b32 always, 0, 0; wgmma.fence.sync.aligned;\n";
  auto describe = [&](const char* name, int64_t i, uint64_t fixed, int64_t units) {
    code += "add.s32 low, " + operand(i) + ", " + text(units) + "; cvt.u64.u32 " + name + ", low; or.b64 " +
            name + ", " + name + ", " + text(int64_t(fixed)) + ";\n";
  };
  const std::string types =
      std::string(".") + (integers ? "s32" : "f32") + "." + type_name(m.a) + "." + type_name(m.b);
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t tile = 0; tile < m.m_tiles; ++tile) {
      describe("da", 0, descriptor(a), step * step_units(a, k) + tile * a_step / 16);
      describe("db", 1, descriptor(b_), step * step_units(b_, k));
      code += "wgmma.mma_async.sync.aligned.m64n" + text(m.n) + "k" + text(k) + types + " {";
      for (int64_t i = 0; i < each; ++i) code += (i ? ",$" : "$") + text(tile * each + i);
      code += std::string("}, da, db, ") + (step == 0 ? "add" : "always");
      if (!integers) code += ", 1, 1";
      if (halves) code += std::string(", ") + (a.k_major ? "0" : "1") + ", " + (b_.k_major ? "0" : "1");
      code += ";\n";
    }
  code += "wgmma.commit_group.sync.aligned; }";
  std::string constraints;
  for (int64_t i = 0; i < count; ++i) constraints += integers ? "=r," : "=f,";
  for (int64_t i = 0; i < count; ++i) constraints += text(i) + ",";
  Values operands(sums.begin(), sums.end());
  auto low_bits = [&](Value address) { return shift_right_bits(bit_and(address, 0x3ffff), 4); };
  operands.append({low_bits(a.address), low_bits(b_.address), accumulate});
  return fields_of(
      *this, assembly(record_of(count, sums[0].getType()), code, constraints + "r,r,r", operands, true));
}

void HopperIr::wait_products(int64_t in_flight) {
  assembly(nullptr, "wgmma.wait_group.sync.aligned " + text(in_flight) + ";", "", {}, true);
}

/// The sums pass through the wait, so that nothing that uses them moves before it.
Values HopperIr::finish_products(mlir::ValueRange sums) {
  const bool integers = sums[0].getType() == i32;
  std::string constraints;
  for (size_t i = 0; i < sums.size(); ++i) constraints += integers ? "=r," : "=f,";
  for (size_t i = 0; i < sums.size(); ++i) constraints += (i ? "," : "") + text(int64_t(i));
  mlir::Type record = record_of(int64_t(sums.size()), sums[0].getType());
  return fields_of(*this, assembly(record, "wgmma.wait_group.sync.aligned 0;", constraints, sums, true));
}

Value HopperIr::elect() { return nvvm::ElectSyncOp::create(b, loc, i1, Value()); }

Value HopperIr::warpgroup() { return shuffle_index(shift_right_bits(thread(), 7), c(0)); }

void HopperIr::registers(bool more, int64_t count) {
  assembly(nullptr,
           std::string("setmaxnreg.") + (more ? "inc" : "dec") + ".sync.aligned.u32 " + text(count) + ";", "",
           {}, true);
}

void HopperIr::named_barrier(Value id, int64_t threads) {
  assembly(nullptr, "bar.sync $0, " + text(threads) + ";", "r", id, true);
}
void HopperIr::named_barrier_arrive(int64_t id, int64_t threads) {
  assembly(nullptr, "bar.arrive " + text(id) + ", " + text(threads) + ";", "", {}, true);
}

Value HopperIr::opaque(Value x) { return assembly(i32, "mov.b32 $0, $1;", "=r,r", x, true); }

Value HopperIr::block_of_cluster() { return nvvm::ClusterId::create(b, loc, i32); }
void HopperIr::cluster_arrive() { assembly(nullptr, "barrier.cluster.arrive.relaxed;", "", {}, true); }
void HopperIr::cluster_wait() { assembly(nullptr, "barrier.cluster.wait;", "", {}, true); }
void HopperIr::cluster_barrier() {
  warp_barrier();
  assembly(nullptr, "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;", "", {}, true);
}

void HopperIr::store_matrix(Value address, mlir::ValueRange registers, bool transposed) {
  const bool four = registers.size() == 4;
  Values operands = {address};
  operands.append(registers.begin(), registers.end());
  assembly(nullptr,
           std::string("stmatrix.sync.aligned.m8n8.") + (four ? "x4" : "x2") + (transposed ? ".trans" : "") +
               ".shared.b16 [$0], " + (four ? "{$1, $2, $3, $4};" : "{$1, $2};"),
           four ? "r,r,r,r,r" : "r,r,r", operands, true);
}

} // namespace deepgen
