// NvIr: GpuIr for NVIDIA GPUs, over MLIR's nvvm dialect and pieces of PTX, and the instructions that these
// alone have. HopperIr (hopper_ir.h) adds those of sm_90a. Shared memory is dynamic.
#pragma once

#include "templates/ir/gpu_ir.h"

namespace deepgen {

class NvIr : public GpuIr {
public:
  /// `target`: Kernel::target, such as "sm_90".
  NvIr(mlir::ModuleOp module, const std::string& target);

  const int64_t capability; ///< 80, 86, 89, 90, 100, 120

  /// From here on the argument is an array of so many tensor maps, of all entries: those of one operand in
  /// Kernel::maps.
  void make_array(const std::string& map, int64_t count) { map_counts_[map] = count; }

  Value shared_memory() override;

  Value thread() override;
  Value block_x() override;
  Value block_y() override;
  Value block_z() override;
  Value grid_x();        ///< blocks along x
  Value warp() override; ///< the same register for all lanes of a warp

  /// read_only: ld.global.nc; streamed: into L2 by 256 bytes.
  Value load_global(mlir::Type, Value address, int64_t alignment, CachePolicy = CachePolicy::usual) override;
  /// cp.async of 4, 8 or 16 bytes; of those `valid` bytes (i32; null: all) are read and the rest becomes
  /// zero.
  void copy_async(Value shared_address, Value global_address, int64_t bytes, Value valid = nullptr);
  /// The same where `wanted` (i1) holds, as one predicated instruction; else shared memory stays as it is.
  void copy_async_if(Value wanted, Value shared_address, Value global_address, int64_t bytes,
                     Value valid = nullptr);
  void commit_copies();
  void wait_copies(int64_t groups_in_flight);
  /// ldmatrix: 1, 2 or 4 matrices of 8 x 8 16-bit elements; i32 registers.
  Values load_matrix(Value shared_address, int64_t count, bool transposed);

  void barrier() override;
  void warp_barrier();   ///< of the warp
  Value any_lane(Value); ///< i1: whether it holds in any lane of the warp
  Value shuffle_index(Value, Value lane) override;
  void prefetch(Value global_address) override;
  bool launches_early() const override { return capability >= 90; } ///< programmatic dependent launch
  void wait_for_predecessor() override;
  void launch_dependents() override;

  Value round_tf32(Value f32);                      ///< cvt.rna.tf32; f32 with the lower 13 bits zero
  Value exp2_fast(Value f32) override;              ///< ex2.approx.ftz: 2 ulp
  Value log2_fast(Value f32) override;              ///< lg2.approx: 2^-22 absolute near 1, else relative
  Value reciprocal_fast(Value f32) override;        ///< rcp.approx.ftz: 1 ulp
  Value dot4(Value a, Value b, Value sum) override; ///< dp4a

  /// One piece of PTX; `side_effects`: neither moved across others nor deleted, and memory is clobbered.
  Value assembly(mlir::Type result, const std::string& text, const std::string& constraints, mlir::ValueRange,
                 bool side_effects);

protected:
  void define(const GpuEntry&, const Parameters&, const std::function<void(const Arguments&)>& body) override;
  Value shuffle_word_xor(Value, int64_t lane_mask) override;
  Value round_to_i8(Value f32) override;
  Value decode_pair(Type, Value) override; ///< by an instruction from sm_89 on
  Value encode_e4m3(Value) override;       ///< the same

private:
  std::map<std::string, int64_t> map_counts_; ///< those that are not 1
};

} // namespace deepgen
