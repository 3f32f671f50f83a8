// The sum of a tile of D whose parts over K are in the blocks of a cluster. Each block leaves its partial
// sums in its own shared memory, where the stages were; then each adds up its share of the tile, reading all
// blocks' parts in the order of K, and stores it through the epilogue. Nothing goes through global memory,
// and the sum does not depend on which block is first.
#pragma once

#include "templates/nvidia/hopper_ws/hopper_ws_store.h"

namespace deepgen {

class HopperClusterSum {
public:
  /// By one warpgroup of consumers; all of all blocks take part. `rank`: of the block in its cluster.
  HopperClusterSum(HopperIr&, const Gemm&, const HopperTiling&, const GpuIr::Arguments&, const HopperPlace&,
                   Value rank);
  /// `sums`: of the thread, as wgmma leaves them. `goes_on` (i1): the block has another tile after this one.
  void emit(const Values& sums, Value goes_on);
  /// By the producer's warpgroup, behind its last copy for the tile: all threads of a cluster meet where the
  /// sums are complete, and again before the next tile's stages overwrite them.
  static void meet(HopperIr&, Value goes_on);

private:
  void leave(const Values& sums);
  Value sum_up(Value offset); ///< of all blocks; a vector
  void store_share();

  HopperIr& ir;
  const Gemm& p;
  const HopperTiling& t;
  const GpuIr::Arguments& arguments;
  const HopperPlace at;
  Value first_rank, rank_k; ///< of the blocks that share the tile; this one's among them
  Values parts;             ///< addresses of the partial sums, of each block
};

} // namespace deepgen
