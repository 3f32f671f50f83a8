// mma_attention: attention on tensor cores by warp-wide mma.sync, for every NVIDIA GPU since Ampere, after
// Dao
// ("FlashAttention-2", 2023): a block keeps rows of Q and goes over blocks of keys and values, which cp.async
// brings into shared memory. Scores stay in registers, where their exponentials become the first operand of
// the second product. Elements of e4m3 become f16 on their way, one by one: for any alignment, and any GPU.
#pragma once

#include "templates/core/operator_template.h"
#include "templates/gpu/attention/attention_tile.h"
#include "templates/nvidia/mma_sync/mma_sync_fragments.h"

namespace deepgen {

/// A config of mma_attention with everything that follows from it for one problem.
struct MmaAttentionTiling : AttentionTile {
  MmaAttentionTiling(const Attention&, const Config&);

  int64_t warps; ///< that share the rows
  /// Blocks of keys and values in shared memory. 1: values are on their way while scores are made, and the
  /// next keys while values are weighed.
  int64_t stages;
  bool hold;        ///< Q's fragments stay in registers
  int64_t align;    ///< bytes: 16, or an element
  int64_t resident; ///< blocks that a multiprocessor must have room for
  int64_t threads;
  int64_t depth, columns; ///< head_dim and value_dim, in whole steps of 16
  SharedTile q, key, value;
  int64_t stage_bytes, shared;
  int64_t registers; ///< of a thread, about

  int64_t column_tiles() const { return columns / 8; }
};

/// What a tile in shared memory is of.
inline Type multiplied_as(Type t) { return t == Type::e4m3 ? Type::f16 : t; }

class MmaAttention : public AttentionTemplate {
public:
  std::string name() const override { return "mma_attention"; }
  int64_t revision() const override { return 2; } // 2: starts while its predecessor ends
  std::string why_not(const Attention&, const std::string& arch) const override;
  bool serves_pages() const override { return true; }
  bool serves_bias() const override { return true; }
  bool serves_splits() const override { return true; }
  int64_t workspace(const Attention&, const Config&) const override;
  std::vector<Parameter> parameters(const Attention&, const Device&) const override;
  std::string why_illegal(const Attention&, const Device&, const Config&) const override;
  bool dead_end(const Attention&, const Device&, const Config&, size_t assigned) const override;
  double cost(const Attention&, const Device&, const Config&) const override;
  std::vector<Choice> fallbacks(const Attention&, const std::string& arch, const Config&) const override;
  Attention awkward(const Attention&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Attention&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
