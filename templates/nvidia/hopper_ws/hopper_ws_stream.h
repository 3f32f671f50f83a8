// Stream-K: the last wave of tiles and the one before it are shared out evenly over all blocks, by tiles of
// K, where the last one would leave most of them idle. A tile then has up to two parts. The block (or
// cluster) of the lower number has the first part and leaves its sums in the workspace; the next one adds
// them to its own and stores the tile. So the order of the sum is fixed, and nobody waits for a block of a
// higher number, which need not have started yet. The first part comes before or behind the whole tiles of a
// block.
#pragma once

#include "templates/nvidia/hopper_ws/hopper_ws.h"

namespace deepgen {

class HopperStreamK {
public:
  /// By all threads, as work is found by producer and consumers alike. `work`: tiles of clusters of the call.
  /// `tiles_k`: of a tile of D. `cluster` of `clusters` that run.
  HopperStreamK(HopperIr&, const Gemm&, const HopperTiling&, const KernelArguments&, const SizeValue& work,
                const SizeValue& tiles_k, Value cluster, Value clusters);

  /// A tile, or the part of one that the block has: pieces are numbered first() to end() - 1 in its order.
  struct Piece {
    Value tile;             ///< its number
    Value k_first, k_count; ///< in tiles of K
    Value k_start;          ///< where in these it begins: behind their end it goes on at their beginning
    Value leaves, takes;    ///< i1: its sums are for another block; another block's sums belong to it
  };
  Value first() const { return first_; }
  Value end() const { return end_; }
  /// `sparing`: what follows from the block's share is worked out for each piece, and not kept in registers.
  Piece piece(Value number, bool sparing) const;
  Value count(Value number) const; ///< k_count of a piece

  // By one warp of the consumers.
  void leave(const Values& sums) const;
  Values take(const Values& sums) const; ///< with those that were left

  /// Bytes at the beginning of the workspace.
  static int64_t workspace(const HopperTiling&, int64_t work);
  /// Adds the entry `deepgen_clear` to the module, which makes flags that the main kernel sets, and returns
  /// its launch. The main kernel's starts meanwhile, and waits for it before it touches the workspace.
  static Launch emit_clear(GpuIr&, const Gemm&, const HopperTiling&,
                           const std::vector<std::string>& arguments);
  /// A part has at least so many tiles of K.
  static int64_t least_part(int64_t tiles_k);
  static constexpr int64_t kFewestTilesK = 8; ///< that are worth it

private:
  struct Place {
    Value tile, k;
  };
  Place boundary(Value cluster) const; ///< where the share of a cluster begins
  Place boundary_of_call(Value at) const;
  Value flag(Value block) const;
  Value sums_at(Value block) const; ///< of the thread

  HopperIr& ir;
  const Gemm& p;
  const HopperTiling& t;
  const KernelArguments& arguments;
  const SizeValue tiles_k;
  Value cluster, clusters;
  Value whole_waves;  ///< tiles that the block has alone, one of each wave
  Value base;         ///< the first tile that is shared out
  Value each, longer; ///< tiles of K of a share; so many have one more
  Place begin_, end_of_share_;
  Value first_, end_, taking_, leaving_; ///< the last two: numbers of the pieces that take and leave
};

} // namespace deepgen
