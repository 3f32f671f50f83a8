// hopper_attention: attention on Hopper's warpgroup-wide tensor cores (sm_90a), after Shah and others
// ("FlashAttention-3", 2024). One warp produces: it brings blocks of Q, keys and values into shared memory by
// TMA. One to four warpgroups consume, 64 rows of Q each: scores by wgmma from shared memory, their softmax
// in registers, and the product with values by wgmma whose first operand are the registers. Scores of the
// next block of keys, and the product of the present one, are under way while a softmax is computed. Keys and
// values may lie in pages: a box is of one page then. Of 8-bit floats, wgmma takes values only with keys side
// by side: three warps beside the producer transpose them. As tensor cores keep fewer bits of their sums, the
// product of each block of keys may be one of its own, which is added to sums in f32. Of few rows of Q,
// operands may be swapped: keys, and then columns of values, lie along wgmma's 64 rows, and rows of Q along
// its columns.
#pragma once

#include "templates/core/operator_template.h"
#include "templates/gpu/attention/attention_tile.h"
#include "templates/ir/warpgroup_mma.h"

#include <algorithm>

namespace deepgen {

/// A config of hopper_attention with everything that follows from it for one problem.
struct HopperAttentionTiling : AttentionTile {
  HopperAttentionTiling(const Attention&, const Config&);

  int64_t consumers;
  int64_t resident; ///< blocks that a multiprocessor has room for
  int64_t q_stages; ///< blocks of Q in shared memory
  int64_t stages;   ///< blocks of keys, and of values, in shared memory
  bool pingpong;    ///< the consumers start products in turn
  bool early;       ///< sums are rescaled while the next scores are made, and not behind their own product
  bool halfway;     ///< the product before is awaited when half of the exponentials are made
  bool persistent;  ///< as many blocks as run at a time, that walk over all rows
  bool swap;        ///< both products are transposed: a block's rows of Q are wgmma's columns
  int64_t threads;
  bool narrow;   ///< of 8-bit floats
  bool promoted; ///< of these, the product of a block of keys starts from zero, and is added to sums in f32
  int64_t slice; ///< elements of 128 bytes
  int64_t depth_steps;            ///< of 32 bytes of a row of Q
  int64_t q_slices, value_slices; ///< of 128 bytes of a row
  int64_t columns;                ///< of the sums: whole slices; or, of 8-bit floats, whole steps of 16
  int64_t box; ///< keys of a box of TMA: a whole block of keys, or what it has of a page at least
  int64_t q_bytes, key_bytes, value_bytes;
  int64_t turned_bytes; ///< of a block of transposed values: slices of 128 keys; 0: there are none
  int64_t weight_bytes; ///< swapped: of a block of exponentials, slices of 64 keys; 0: there are none
  int64_t shared_rows;  ///< swapped: bytes of what the warps tell each other of rows
  int64_t keys_offset, values_offset, turned_offset, weights_offset, barriers_offset, shared;
  int64_t weights;   ///< registers of a consumer's thread that exponentials take as the product's operand
  int64_t registers; ///< of a consumer's thread, about
  int64_t start_registers;                                ///< that each thread has as the block starts
  int64_t producer_registers = 0, consumer_registers = 0; ///< the first 0: as the block starts
  WarpgroupMma scores, sums;

  // Of a thread: what it has of the block's sums, and of how many rows.
  int64_t sum_registers() const { return swap ? value_slices * rows / 2 : columns / 2; }
  int64_t swapped_rows() const { return rows / 4; }
  /// Columns of the widest product.
  int64_t widest() const { return std::max(scores.n, sums.n); }
  int64_t row_blocks(const Attention& p) const;
  /// Pairs of entry and head whose rows are worked on at a time: their keys and values stay in L2.
  int64_t together(const Attention& p) const;
};

/// More registers than the count, which ptxas needs.
inline constexpr int64_t kHopperAttentionSpare = 8;

/// Rows of Q that swapped operands take: more nearly fill a tile without, and ptxas spills some of them.
inline constexpr int64_t kMostSwappedRows = 48;
/// Rows of tiles of wgmma: of keys, and of columns of values, where operands are swapped.
inline constexpr int64_t kSwappedKeys = 64;

/// Beside the one that produces, where values are transposed.
inline constexpr int64_t kTurningWarps = 3;

class HopperAttention : public AttentionTemplate {
public:
  std::string name() const override { return "hopper_attention"; }
  int64_t revision() const override { return 3; } // 3: starts while its predecessor ends
  int64_t revision_for(const Attention&, const Config&) const override; ///< 4: pages are looked up ahead
  std::string why_not(const Attention&, const std::string& arch) const override;
  bool serves_bias() const override { return true; }
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
