// HopperIr: what kernels with TMA and wgmma need beyond NvIr: barriers in shared memory that count bytes,
// copies of whole tiles by tensor maps, warpgroup-wide products of tiles in shared memory, clusters. For
// target sm_90a. Addresses of shared memory are i32 here, as the instructions take them; those of another
// block of the cluster too.
#pragma once

#include "templates/ir/nv_ir.h"
#include "templates/ir/warpgroup_mma.h"

namespace deepgen {

class HopperIr : public NvIr {
public:
  using NvIr::NvIr;

  /// The address of a pointer to shared memory, and back.
  Value address(Value shared_pointer);
  Value pointer_to(Value shared_address);

  // Barriers in shared memory (8 bytes each).
  void barrier_init(Value barrier, int64_t arrivals);
  void fence_barrier_init(); ///< makes them known to the cluster and to TMA
  void arrive(Value barrier);
  void arrive_if(Value wanted, Value barrier); ///< one predicated instruction
  void arrive_expecting(Value barrier, int64_t bytes);
  void arrive_expecting(Value barrier, Value bytes);
  void arrive_at_block(Value barrier, Value block_of_cluster);
  /// Until the phase of the given parity has completed.
  void wait(Value barrier, Value parity);

  // Flags in global memory (4 bytes each, 0 at first), by one thread: all that it knows of memory is known to
  // those who wait.
  void set_flag(Value pointer);
  void await_flag(Value pointer);

  /// Asks for a tensor map, which the first copies would otherwise wait for.
  void prefetch_map(Value map);
  // Copies by tensor maps; coordinates innermost first. `blocks` (i16, null: this block alone): the blocks of
  // the cluster that get the tile, at the same address each, with their own barrier told.
  void load_tile(Value map, Value to, Value barrier, mlir::ValueRange coordinates, Value blocks = nullptr);
  void store_tile(Value map, Value from, mlir::ValueRange coordinates);
  void commit_stores();
  void
  wait_stores_read(int64_t in_flight); ///< until the sources of all but so many groups may be overwritten
  /// What this thread wrote to shared memory becomes visible to TMA and wgmma.
  void fence_async();

  // Products. `sums`: of all m_tiles after each other, undefined in the first call of a tile.
  /// Starts sums = (accumulate ? sums : 0) + A * B and commits it as one group. Until wait_products() has let
  /// it pass nobody may touch the sums or overwrite the operands. `a_step`: bytes from one 64 rows of A to
  /// the next.
  Values multiply_tiles(const WarpgroupMma&, const MatrixOperand& a, const MatrixOperand& b, int64_t a_step,
                        Value accumulate, mlir::ValueRange sums);
  void wait_products(int64_t in_flight);
  /// The same for the last group; the sums are values from here on.
  Values finish_products(mlir::ValueRange sums);

  // The same of operands of 16 bits, or 8 (all K-major), and 64 rows, with any steps of K.
  Values multiply_steps(const WarpgroupMma&, const MatrixOperand& a, const MatrixOperand& b,
                        llvm::ArrayRef<ProductStep>, bool accumulate, mlir::ValueRange sums);
  /// A is in registers: four i32 for each step, as mma.sync has them. B's steps follow each other.
  Values multiply_fragments(const WarpgroupMma&, mlir::ValueRange fragments, const MatrixOperand& b,
                            bool accumulate, mlir::ValueRange sums);
  /// Until all but so many groups are done. `results` (f32) are values from here on; `held`, what products
  /// read of registers, stay where they are until here.
  Values wait_products(int64_t in_flight, mlir::ValueRange results, mlir::ValueRange held);

  // Warps and warpgroups.
  Value elect();                            ///< i1: true in one lane of the warp
  Value warpgroup();                        ///< threadIdx.x / 128, the same register for all lanes of a warp
  void registers(bool more, int64_t count); ///< setmaxnreg, by all warps of a warpgroup
  void named_barrier(Value id, int64_t threads);
  void named_barrier_arrive(int64_t id, int64_t threads);
  void named_barrier_arrive(Value id, int64_t threads);

  /// The same value, of which LLVM knows nothing: what follows from it stays in the loop where it is used,
  /// and takes no registers outside of it.
  Value opaque(Value i32);

  // Clusters.
  Value block_of_cluster();
  Value address_at_block(Value shared_address, Value block_of_cluster);
  /// A vector of elements of 32 bits, aligned to its size, from the shared memory of a block of the cluster.
  Value load_from_block(mlir::Type vector, Value address_at_block);
  void cluster_arrive(); ///< orders nothing
  void cluster_wait();
  /// All threads of all blocks of the cluster: what one has done in memory before its release, all know
  /// behind theirs. Between both nobody waits.
  void cluster_release();
  void cluster_acquire();
  void cluster_barrier(); ///< both

  /// stmatrix: 2 or 4 matrices of 8 x 8 16-bit elements from i32 registers.
  void store_matrix(Value shared_address, mlir::ValueRange registers, bool transposed);

private:
  Value descriptor_bits(Value address); ///< the lower bits of a matrix descriptor
};

} // namespace deepgen
