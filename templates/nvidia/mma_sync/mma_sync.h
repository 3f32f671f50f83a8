// mma_sync: GEMM on tensor cores by warp-wide mma.sync, for every NVIDIA GPU since Ampere. Tiles of A and B
// pass through a ring of stages in shared memory, filled by cp.async and read by ldmatrix, both without bank
// conflicts thanks to an XOR swizzle; fragments of the next step of K are loaded while the present one is
// multiplied.
#pragma once

#include "templates/core/operator_template.h"
#include "templates/nvidia/mma_sync/mma_sync_fragments.h"

namespace deepgen {

/// A config of mma_sync with everything that follows from it for one problem. Sizes count elements unless
/// they say bytes.
struct MmaTiling {
  MmaTiling(const Gemm&, int64_t capability, const Config&);

  int64_t bm, bn, bk_bytes, warps_m, warps_n, k_warps, stages, resident, splits, group;
  bool dependent, prefetch;
  int64_t align_a, align_b, align_d;

  MmaShape shape;
  int64_t bk;     ///< elements of K in a tile
  int64_t wm, wn; ///< of a warp's tile
  int64_t threads;
  int64_t steps; ///< of K that one warp makes in a tile
  int64_t tiles_m, tiles_n, tiles_k;
  int64_t split_tiles; ///< tiles of K of a split; some may have one less
  int64_t
      weights; ///< matrices in B: with a gate two, and half of a tile's columns are of one, half of the other
  int64_t columns;      ///< of D in a block's tile
  int64_t warp_columns; ///< of D in a warp's tile
  SharedTile a, b;      ///< b: of one weight
  int64_t stage_bytes;
  int64_t ring;              ///< stages that exist: one is enough for one tile of K, which no range ends at
  int64_t accumulator_bytes; ///< of one accumulator
  bool by_warps;         ///< each warp stores its own tile; else the block does, with its accumulators staged
  int64_t warp_pitch;    ///< by warps: bytes from one staged row of D's elements to the next; 0: not staged
  int64_t pass_tiles;    ///< rows of 16 of each warp's tile that are staged at once for the epilogue
  int64_t staging_pitch; ///< by blocks: accumulators from one staged row to the next
  int64_t staging_rows;  ///< in one pass, of all warps along M
  int64_t shared;        ///< bytes
  int64_t vector;        ///< columns of D that one thread stores at once
  int64_t least_registers; ///< what a limit on registers must leave
  int64_t registers;       ///< of a thread: accumulators, two sets of fragments and some for addresses

  bool split() const { return splits > 1; }
  int64_t blocks() const { return tiles_m * tiles_n * splits; } ///< for one batch entry
};

class MmaSync : public GemmTemplate {
public:
  std::string name() const override { return "mma_sync"; }
  int64_t revision() const override { return 1; }
  /// 2: the last products with a tile of doubles come behind the barrier; one branch around C for all f32
  /// sums.
  int64_t revision_for(const Gemm&, const Config&) const override;
  bool serves_range(Size) const override { return true; }
  std::string why_not(const Gemm&, const std::string& arch) const override;
  std::vector<Parameter> parameters(const Gemm&, const Device&) const override;
  std::string why_illegal(const Gemm&, const Device&, const Config&) const override;
  bool dead_end(const Gemm&, const Device&, const Config&, size_t assigned) const override;
  double cost(const Gemm&, const Device&, const Config&) const override;
  std::vector<Choice> fallbacks(const Gemm&, const std::string& arch, const Config&) const override;
  std::string sum_order(const Gemm&, const std::string& arch, const Config&) const override;
  int64_t workspace(const Gemm&, const Config&) const override;
  Gemm awkward(const Gemm&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Gemm&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
