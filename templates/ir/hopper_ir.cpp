#include "templates/ir/hopper_ir.h"

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

void HopperIr::arrive_if(Value wanted, Value barrier) {
  assembly(nullptr, "@$0 mbarrier.arrive.shared::cta.b64 _, [$1];", "b,r", {wanted, barrier}, true);
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

void HopperIr::prefetch_map(Value map) { assembly(nullptr, "prefetch.tensormap [$0];", "l", map, true); }

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
void HopperIr::named_barrier_arrive(Value id, int64_t threads) {
  assembly(nullptr, "bar.arrive $0, " + text(threads) + ";", "r", id, true);
}

Value HopperIr::opaque(Value x) { return assembly(i32, "mov.b32 $0, $1;", "=r,r", x, true); }

Value HopperIr::block_of_cluster() { return nvvm::ClusterId::create(b, loc, i32); }
void HopperIr::cluster_arrive() { assembly(nullptr, "barrier.cluster.arrive.relaxed;", "", {}, true); }
void HopperIr::cluster_wait() { assembly(nullptr, "barrier.cluster.wait;", "", {}, true); }
void HopperIr::cluster_release() {
  warp_barrier();
  assembly(nullptr, "barrier.cluster.arrive.release;", "", {}, true);
}
void HopperIr::cluster_acquire() { assembly(nullptr, "barrier.cluster.wait.acquire;", "", {}, true); }
void HopperIr::cluster_barrier() { cluster_release(), cluster_acquire(); }

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
