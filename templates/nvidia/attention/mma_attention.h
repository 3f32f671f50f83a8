// mma_attention: attention on tensor cores by warp-wide mma.sync, for every NVIDIA GPU since Ampere, after
// Dao
// ("FlashAttention-2", 2023): a block keeps rows of Q and goes over blocks of keys and values, which cp.async
// brings into shared memory. Scores stay in registers, where their exponentials become the first operand of
// the second product.
#pragma once

#include "templates/core/operator_template.h"
#include "templates/nvidia/mma_sync/mma_sync_fragments.h"

namespace deepgen {

/// A config of mma_attention with everything that follows from it for one problem.
struct MmaAttentionTiling {
  MmaAttentionTiling(const Attention&, const Config&);

  int64_t rows;  ///< of Q that a block has
  int64_t warps; ///< that share them
  int64_t keys;  ///< of a block of keys
  /// Blocks of keys and values in shared memory. 1: values are on their way while scores are made, and the
  /// next keys while values are weighed.
  int64_t stages;
  bool hold;        ///< Q's fragments stay in registers
  bool pack;        ///< a block has the rows of all heads that share a head of K
  int64_t align;    ///< bytes: 16, or 2, an element
  int64_t resident; ///< blocks that a multiprocessor must have room for
  /// Blocks that share out an entry's keys; each has a part of the sums in the workspace, which a second
  /// launch adds up. Only of calls with at most `split_tokens` queries of all entries together.
  int64_t splits;

  int64_t split_tokens, record; ///< bytes of a part: of one row
  int64_t threads;
  int64_t group;          ///< rows of one token: heads of Q in a block
  int64_t warp_rows;      ///< a multiple of 16
  int64_t depth, columns; ///< head_dim and value_dim, in whole steps of 16
  SharedTile q, key, value;
  int64_t stage_bytes, shared;
  int64_t registers; ///< of a thread, about

  int64_t row_tiles() const { return warp_rows / 16; }
  int64_t key_tiles() const { return keys / 8; }
  int64_t column_tiles() const { return columns / 8; }
  int64_t workspace(const Attention&) const;
  /// Blocks along x: `first` of them for each `second` tokens.
  std::pair<int64_t, int64_t> blocks() const;
};

class MmaAttention : public AttentionTemplate {
public:
  std::string name() const override { return "mma_attention"; }
  int64_t revision() const override { return 1; }
  std::string why_not(const Attention&, const std::string& arch) const override;
  bool serves_pages() const override { return true; }
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
