// Which tile of which group of rows a persistent block of hopper_ws has: a table in shared memory.
#pragma once

#include "templates/gpu/gpu_groups.h"
#include "templates/nvidia/hopper_ws/hopper_ws.h"

namespace deepgen {

/// Tiles of clusters are numbered group by group. The table has, for each group and the end, how many rows of
/// tiles lie before it, and its first row of D.
class HopperGroups {
public:
  /// `table`: i32 address of bytes() bytes of shared memory.
  HopperGroups(HopperIr&, const Gemm&, const HopperTiling&, const KernelArguments&, Value table);

  /// By the first warp; all threads of the block wait behind it.
  void fill();
  Value work() const; ///< tiles of clusters

  struct Place {
    Value number, first_row, end_row;
    Value clusters; ///< rows of tiles of clusters
    Value inside;   ///< number of the tile among those of the group
  };
  Place locate(Value index) const;
  KernelArguments arguments_of(Value number) const { return groups_.of_group(number); }

  static int64_t bytes(const Gemm& p) { return p.groups ? 8 * (p.groups + 1) : 0; }
  /// Of tiles of clusters: the most that a table of offsets can ask for.
  static int64_t most_work(const Gemm&, const HopperTiling&);
  static SizeRule grid_rule(const Gemm&, const HopperTiling&);

private:
  Value read(Value group, int64_t column) const;

  HopperIr& ir;
  const Gemm& p;
  const HopperTiling& t;
  mutable GpuGroups groups_;
  const SizeValue columns_; ///< of tiles of clusters
  Value table_;
};

} // namespace deepgen
