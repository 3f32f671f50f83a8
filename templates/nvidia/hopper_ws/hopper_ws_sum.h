// The sum of a tile of D whose parts over K are in the blocks of a cluster. Each block leaves its partial
// sums in its own shared memory, where the stages were; then each adds up its share of the tile in registers,
// reading all blocks' parts in the order of K, and stores it through the epilogue. Nothing goes through
// global memory, and the sum does not depend on which block is first.
#pragma once

#include "templates/nvidia/hopper_ws/hopper_ws_store.h"

namespace deepgen {

class HopperClusterSum {
public:
  /// By one warpgroup of consumers; all of all blocks take part. `rank`: of the block in its cluster.
  HopperClusterSum(HopperIr&, const Gemm&, const HopperTiling&, const GpuIr::Arguments&, const HopperPlace&,
                   Value rank);
  /// `sums`: of the thread, as wgmma leaves them.
  void emit(const Values& sums);
  /// By the producer's warpgroup, behind its last copy for the tile: all threads of a cluster meet where the
  /// sums are complete, and again where all have been read: then the next tile's stages may overwrite them,
  /// and the block may end.
  static void meet(HopperIr&);

private:
  /// Four sums of a row.
  struct Piece {
    Value inside; ///< of the block's share; null: for sure
    Value row, column;
    Values sums; ///< vectors; of the second weight, too
  };
  int64_t share() const; ///< of a block, in pieces; the last one's may be smaller
  int64_t in_row() const;
  int64_t threads() const { return 128 * t.consumers; }
  int64_t weights() const { return p.gate ? 2 : 1; }
  /// Whether all threads have a piece in this step, of `threads` pieces, in all blocks.
  bool is_sure(int64_t step) const;
  void leave(const Values& sums);
  Value sum_up(Value offset); ///< of all blocks; a vector
  /// The thread's one of those from piece `first` of the share on. Several are on their way at a time:
  /// another block's memory is far.
  Piece load(Value first, bool sure);
  void store(const Piece&);
  void store_sums(const Piece&);

  HopperIr& ir;
  const Gemm& p;
  const HopperTiling& t;
  const GpuIr::Arguments& arguments;
  const HopperPlace at;
  Value first_rank, rank_k; ///< of the blocks that share the tile; this one's among them
  Values parts;             ///< addresses of the partial sums, of each block
};

} // namespace deepgen
