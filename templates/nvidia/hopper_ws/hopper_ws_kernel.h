// The body of hopper_ws's kernel: one warpgroup fills the ring of stages (hopper_ws_produce.cpp), the others
// multiply and store (hopper_ws_emit.cpp). Both walk over the same work.
#pragma once

#include "templates/ir/hopper_ir.h"
#include "templates/nvidia/hopper_ws/hopper_ws_edge.h"
#include "templates/nvidia/hopper_ws/hopper_ws_groups.h"
#include "templates/nvidia/hopper_ws/hopper_ws_store.h"
#include "templates/nvidia/hopper_ws/hopper_ws_stream.h"

#include <optional>

namespace deepgen {

class HopperKernel {
public:
  HopperKernel(HopperIr& ir, const Gemm& p, const HopperTiling& t, const GpuIr::Arguments& arguments)
      : ir(ir), p(p), t(t), products(t.of_products()), arguments(arguments), sizes(ir, p, arguments),
        clusters_m(ir.tiles(t.swap ? sizes.n : sizes.m, t.swap ? t.cluster_columns() : t.cluster_rows())),
        clusters_n(ir.tiles(t.swap ? sizes.m : sizes.n, t.swap ? t.cluster_rows() : t.cluster_columns())),
        tiles_k(ir.tiles(sizes.k, t.bk)), once(t.once(p)) {}
  void emit();

private:
  /// One step of a block through the work of the grid. `entry` and `split` are null when there is one.
  struct Work {
    Value cluster_m, cluster_n; ///< the cluster's place among those of D or its transpose
    Value m0, n0;               ///< of the block's tile, in rows and columns of D or its transpose
    Value entry, split;
    Value group, row_end;         ///< of rows, and where it ends; null without groups
    Value k_first, k_count;       ///< in tiles of K; split s has the tiles s, s + splits, ...
    Value k_start, leaves, takes; ///< as of HopperStreamK::Piece; null without
  };

  /// How the tiles of a step come in, the same in all stages. Null: by whole boxes.
  struct Edges {
    std::optional<HopperEdge> left, right;
    Value bytes; ///< of a stage; null: all
  };

  /// A position in the ring of stages: the stage, and the parity of its round.
  struct RingPlace {
    Value stage, parity;
  };

  void start();
  void prefetch_maps();
  void produce();
  void drain(RingPlace);
  Values fill_tile(const Work&, mlir::ValueRange ring);
  void prefetch();
  void prefetch(const HopperTile&, Value first, Value part, const Work&, Value sharer,
                const SizeValue& sharers);
  Value second_weight(Value along, int64_t further) const;
  Edges edges_of(const Work&) const;
  void fill_stage(const Work&, const Edges&, Value k_tile, Value address, Value full);
  void load(const HopperTile&, const std::optional<HopperEdge>&, Value first, Value part, Value blocks,
            Value k, Value entry, Value to, Value full);
  void consume();
  void consume_tile(Value consumer);
  Values accumulate(const Work&, Value consumer, RingPlace& place);
  void fetch(const Work&, Value consumer, Value step);
  void release(Value stage, Value also);
  void store_piece(const Work&, const HopperPlace&, const Values& sums);
  void store(HopperPlace, const Values& sums);
  void take_turn(Value consumer);
  void pass_turn(Value consumer);

  Work locate(Value index);
  Work locate_in_group(Value index) const;
  Work locate_piece(Value number, bool sparing = false);
  // The steps of a block: tiles of clusters, as many apart as run at a time, or its pieces.
  Value first_step() const { return stream ? stream->first() : cluster; }
  Value stride() const { return stream ? ir.c(1) : clusters; }
  Value end() const { return stream ? stream->end() : groups ? groups->work() : ir.c(work()); }
  /// Tiles of clusters of all splits and batch entries, without groups.
  SizeValue work() const {
    return ir.product(ir.product(ir.product(clusters_m, clusters_n), t.splits), sizes.batch);
  }
  Value k_tile(const Work&, Value i) const;
  RingPlace next(RingPlace) const;
  Value full_barrier(Value stage) const { return ir.add(barriers, ir.shift_left(stage, 3)); }
  Value empty_barrier(Value stage) const { return ir.add(full_barrier(stage), 8 * t.stages); }
  Value stage_address(Value stage) const { return ir.add(memory, ir.mul(stage, t.stage_bytes)); }

  HopperIr& ir;
  const Gemm& p;
  const HopperTiling& t;
  const HopperTiling products; ///< tiles of D
  const GpuIr::Arguments& arguments;
  const GpuSizes sizes;
  const SizeValue clusters_m, clusters_n; ///< along wgmma's M and N; with groups of all rows
  const SizeValue tiles_k;
  const bool once;              ///< each block has one tile, and of ping-pong's consumers the first one
  Value memory, barriers;       ///< i32 addresses of shared memory
  Value rank;                   ///< in the cluster
  Value rank_m, rank_n, rank_k; ///< in each direction; null without
  std::optional<HopperGroups> groups;
  std::optional<HopperStreamK> stream; ///< then steps of a block are numbers of its pieces
  Value cluster, clusters;             ///< number of this one, and of all that run
};

} // namespace deepgen
