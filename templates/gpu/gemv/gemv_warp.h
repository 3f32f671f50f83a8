// GemvWarp: what one warp of a gemv kernel does. It loads its share of the weights and of the vectors into
// registers, multiplies, and leaves its sums in shared memory.
#pragma once

#include "templates/gpu/gemv/gemv.h"
#include "templates/ir/nv_ir.h"

namespace deepgen {

/// The operands of one batch entry and where the warp stands in them.
struct GemvOperands {
  Value weights, vectors;           ///< pointers
  Value weight_pitch, vector_pitch; ///< bytes from one stored row to the next, i64
  Value first_row;                  ///< of the warp, i32
  Value last_vector;                ///< of those that `vectors` points to, i32; null: there are all
  Value worker;                     ///< which of GemvTiling::workers the warp is, i32
  SizeValue k;                      ///< of the call
};

/// The type of sums: f32, f64 or i32.
mlir::Type gemv_accumulator(GpuIr&, const GemvTiling&);

class GemvWarp {
public:
  GemvWarp(GpuIr&, const GemvTiling&, const GemvOperands&);

  /// Asks for the weights of the first step, before it is known that they are not being written.
  void prefetch();
  /// The warp's sums over its share of K, in registers.
  Values run();
  /// Stores them as [width][columns] at `slots` in shared memory.
  void store(const Values& sums, Value slots);

private:
  // Loads (gemv_warp.cpp). A step covers k_step elements of K; the lane reads pieces at `positions` of it.
  void find_weights();
  void find_vectors();
  int64_t position(int64_t j) const; ///< of piece j, in elements of K from the lane's first
  Value weights_address(int64_t group, int64_t j, Value k);
  Value load_weights(int64_t group, int64_t j, Value k);
  Values load_weights(Value k); ///< all of a step, [group][position]
  Value load_vector(int64_t vector, int64_t position, Value k);
  Value gather_vector(int64_t vector, int64_t position, Value k);
  /// Loads where the piece is inside K; else zero, read from nowhere.
  Value guarded(mlir::Type, Value address, Value safe, int64_t bytes, int64_t position, CachePolicy);
  Values whole_steps(Values sums);
  Values ragged_step(Values sums);
  Values pipelined_steps(Values sums, Value end, int64_t round);
  /// The same where a call says K.
  Values whole_steps_of_call(Values sums), ragged_step_of_call(Values sums);

  // Arithmetic (gemv_multiply.cpp).
  Values multiply(Values sums, const Values& pieces, Value k);
  void multiply_fma(Values& sums, const Values& pieces, int64_t j, Value k);
  void multiply_mma(Values& sums, const Values& pieces, int64_t u, Value k);
  void mma(Values& sums, int64_t tile, mlir::ValueRange a, const std::vector<Values>& b);
  Value fma(Value x, Value y, Value sum);
  void store_fma(Values sums, Value slots);
  void store_mma(const Values& sums, Value slots);
  Values chunks(Value piece); ///< registers that hold whole elements
  Values decode(Type, Value chunk);
  NvIr& nv() { return static_cast<NvIr&>(ir); } ///< where t.mma, which rules keep to NVIDIA GPUs

  GpuIr& ir;
  const GemvTiling& t;
  const GemvOperands& from;
  Value lane_, lane_k_;                ///< i32; lane_k: the lane's first element of K in a step
  Values weights_, vectors_;           ///< addresses of the lane's first pieces, per group and vector
  Values safe_weights_, safe_vectors_; ///< of elements that exist whatever K is
  int64_t rest_ = 0;                   ///< elements of K in the step that is being made; 0: all of them
  Value rest_of_call_;                 ///< the same where a call says K, i32; null: all of them
};

} // namespace deepgen
