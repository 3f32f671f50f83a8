// The sum of a tile of D whose parts over K are in the blocks of a cluster. Each block leaves its partial sums in its own shared
// memory; then each adds up its share of the tile, reading all blocks' parts in the order of K, and stores it through the
// epilogue. Nothing goes through global memory, and the sum does not depend on which block is first.
#pragma once

#include "templates/hopper_ws_store.h"

namespace deepgen {

class HopperClusterSum {
public:
  /// By one warpgroup of consumers; all of all blocks take part. `rank`: of the block in its cluster. `parity`: of the tile among
  /// those of the block.
  HopperClusterSum(HopperIr&, const Problem&, const HopperTiling&, const GpuIr::Arguments&, const HopperPlace&, Value rank,
                   Value parity);
  /// `sums`: of the thread, as wgmma leaves them. `goes_on` (i1): the block has another tile after this one.
  void emit(const Values& sums, Value goes_on);

  /// Its barriers, by one thread before any other uses them.
  static void initialise(HopperIr&, const HopperTiling&, Value memory);

private:
  void leave(const Values& sums);
  void tell_all(Value barrier);
  Value sum_up(Value offset); ///< of all blocks; a vector
  void store_share();

  HopperIr& ir;
  const Problem& p;
  const HopperTiling& t;
  const GpuIr::Arguments& arguments;
  const HopperPlace at;
  Value first_rank, rank_k; ///< of the blocks that share the tile; this one's among them
  Value parity;
  Values parts; ///< addresses of the partial sums, of each block
};

} // namespace deepgen
