// AmdIr: GpuIr for AMD GPUs, over MLIR's rocdl dialect, and the instructions that these alone have. Shared
// memory (LDS) is static: one symbol of the module, as large as the entry that uses it says.
#pragma once

#include "base/kernel/amd.h"
#include "templates/ir/gpu_ir.h"

namespace deepgen {

class AmdIr : public GpuIr {
public:
  /// `target`: Kernel::target, such as "gfx942".
  AmdIr(mlir::ModuleOp module, const std::string& target);

  const AmdArch& arch;
  const std::string target;

  Value shared_memory() override;

  Value thread() override;
  Value block_x() override;
  Value block_y() override;
  Value block_z() override;
  Value warp() override; ///< thread / 32, though a wave may have 64 lanes
  Value wave();          ///< thread / arch.wave, in a scalar register
  Value wave_lane();     ///< thread % arch.wave
  Value uniform(Value);  ///< an i32 that all lanes of a wave agree on, in a scalar register

  Value load_global(mlir::Type, Value address, int64_t alignment, CachePolicy = CachePolicy::usual) override;
  Value shuffle_index(Value, Value lane) override;
  /// shuffle_xor() of 32 bits within a wave: a mask of 32 swaps the halves of one with 64 lanes.
  Value shuffle_wave_xor(Value, int64_t lane_mask);
  /// Of the block. Orders shared memory alone, so that loads from global memory stay in flight.
  void barrier() override;
  /// Keeps LLVM's passes over IR from moving memory accesses across; the instruction scheduler may.
  void keep_order();
  void fence_schedule();     ///< LLVM's scheduler moves no instruction across
  void priority(int64_t of); ///< of the wave over others of its SIMD: 0 (as at its start) to 3

  /// From global memory into shared memory: lane l's `bytes` go to `shared` (the same for all lanes) + bytes
  /// * l, both aligned to as much. Nobody may read them before a barrier that this wave has come to when they
  /// were not under way. bytes: 4 on CDNA; also 16 on gfx950.
  void copy_to_shared(Value shared, Value global, int64_t bytes);

  /// `bytes` (i32) of global memory as a raw buffer, all the same for all lanes of a wave. Its loads are of
  /// whole elements at offset (i32) + moved (i32, the same for all lanes), which address memory as unsigned
  /// numbers; those beyond the end are zeros and not made. Loads of 4 bytes and more are aligned to 4.
  /// `moved` never decides whether an access is inside: chips differ in whether they look at it.
  Value buffer(Value base, Value bytes);
  Value load_buffer(mlir::Type, Value buffer, Value offset, Value moved);
  void copy_buffer_to_shared(Value shared, Value buffer, Value offset, Value moved, int64_t bytes);
  /// Waits until at most `left` of the wave's loads from global memory and copies are under way; 63: for none
  /// of them.
  void wait_copies(int64_t left);
  /// barrier(), ahead of which at most `left` of them are under way. At barrier() LLVM would wait for all.
  void barrier_beside_copies(int64_t left);
  /// From shared memory that no copy under way writes: LLVM would wait for all of them.
  Value load_copied(mlir::Type, Value address, int64_t alignment);

  Value exp2_fast(Value f32) override;       ///< v_exp_f32: 1 ulp, subnormal results are 0
  Value log2_fast(Value f32) override;       ///< v_log_f32: 1 ulp, a subnormal number is 0
  Value reciprocal_fast(Value f32) override; ///< v_rcp_f32: 1 ulp
  Value dot4(Value a, Value b, Value sum) override;
  /// i32 registers of two f16 each, or bf16 where the chip has that; f32 sum.
  Value dot2(Type, Value a, Value b, Value sum);

  /// A call of an LLVM intrinsic, by its name without types.
  Value intrinsic(mlir::Type result, const std::string& name, mlir::ValueRange operands);

protected:
  /// entry.min_blocks becomes waves of a SIMD. There are neither clusters nor a limit on registers.
  void define(const GpuEntry&, const Parameters&, const std::function<void(const Arguments&)>& body) override;
  Value round_to_i8(Value f32) override;
  Value shuffle_word_xor(Value, int64_t lane_mask) override;

private:
  mlir::ArrayAttr attributes_of(const GpuEntry&);
  void fence(bool release);
  void wait(int64_t loads, int64_t shared_accesses);
  mlir::ArrayAttr copies(); ///< the alias scope of what copy_to_shared() writes
  int64_t shared_bytes_ = 0;
  bool has_block_z_ = false; ///< the entry that is being made asks for it
};

} // namespace deepgen
