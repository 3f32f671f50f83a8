// hopper_ws: GEMM on Hopper's warpgroup-wide tensor cores (sm_90a). One warpgroup produces: one of its
// threads fills a ring of stages in shared memory by TMA. One to three warpgroups consume: they multiply
// stages by wgmma, straight from shared memory, and store their sums through shared memory by TMA while the
// next tile is being filled. Blocks are persistent: each walks over tiles of D, alone or in clusters that
// share their loads.
#pragma once

#include "templates/core/operator_template.h"
#include "templates/gpu/gpu_pack.h"
#include "templates/ir/warpgroup_mma.h"

namespace deepgen {

/// One operand's tile in a stage: slices of 128 bytes along the dimension that is contiguous in memory. With
/// a gate that of B has `pieces`, in turn of one weight and of the other: two of the columns of D are next to
/// each other in both.
struct HopperTile {
  HopperTile() = default;
  HopperTile(char letter, Type type, bool k_major, int64_t rows, int64_t bk, int64_t share, int64_t pieces);

  char letter = 'a'; ///< of the operand: or 'b'
  Type type = Type::bf16;
  bool k_major = true;
  int64_t rows = 0;                      ///< along M or N
  int64_t pieces = 1;                    ///< of as many rows each
  int64_t box_columns = 0, box_rows = 0; ///< of one copy
  int64_t copies =
      1; ///< that one block of the cluster makes of a piece for 128 bytes of K (k_major) or 64 elements
  int64_t share = 1;       ///< blocks of the cluster that load a part of it each, and send it to all of them
  int64_t slice_bytes = 0; ///< from one 64 rows to the next, when not k_major
  int64_t bytes = 0;       ///< of one slice of K
  /// Of the box in which a part comes that reaches far beyond the matrix (hopper_ws_edge.h), by a map of its
  /// own behind the operand's; of a size with a range at most. 0: none does.
  int64_t edge_rows = 0;
  bool edge_skips = false; ///< some parts are wholly beyond the matrix

  bool is_a() const { return letter == 'a'; }
  std::string name() const { return std::string(1, letter); }
  Size along() const { return is_a() ? Size::m : Size::n; }   ///< of `rows`
  int64_t part_rows() const { return rows / pieces / share; } ///< that a block copies of a piece
  MatrixOperand operand(Value address) const { return {address, k_major, slice_bytes}; }
  /// By all blocks that share it: `bytes`, if a cluster can share the rows out.
  int64_t copied_bytes() const { return share * pieces * copies * box_columns * box_rows * size_of(type); }
  int64_t rows64_bytes() const { return k_major ? 64 * 128 : slice_bytes; } ///< from 64 rows to the next 64
};

namespace hopper {
/// Kernels with no more blocks have one tile a block, and no walk from tile to tile: as many multiprocessors
/// as an H100 SXM, H200 or GH200 has. Where there are fewer, blocks run after each other. Tests lower it, to
/// see few tiles walked over.
inline int64_t most_blocks_of_one_tile = 132;
} // namespace hopper

/// How sums leave through shared memory: boxes of a few rows of D with up to 128 bytes each.
struct HopperStaging {
  int64_t columns = 0;   ///< of D in a box
  int64_t rows = 0;      ///< of D in a box
  int64_t boxes = 1;     ///< side by side in a buffer
  int64_t row_bytes = 0; ///< from one row of a box to the next
  int64_t swizzle = 0;   ///< bytes, as in TensorMap
  int64_t box_bytes = 0;
  int64_t buffers = 2; ///< for each warp (swapped: for each warpgroup)
  int64_t passes = 1;  ///< a tile leaves in so many, each through one buffer
  /// A matrix of the epilogue, "residual" or "multiplier", that TMA brings to the buffers while the main loop
  /// runs: what becomes of it leaves from there. Empty: none.
  std::string reads;
  bool by_threads = false; ///< though TMA could: of few bytes, once, they take less time
  int64_t buffer_bytes() const { return boxes * box_bytes; }
  int64_t copied_bytes() const { return boxes * rows * row_bytes; } ///< to or from a buffer
};

/// The partial sums of a tile that blocks of a cluster share over K, at the start of the shared memory of
/// each, where the stages were: rows of D, for each weight.
struct HopperPartials {
  int64_t rows = 0, columns = 0; ///< of D
  int64_t pitch = 0;             ///< sums from one row to the next
  int64_t bytes = 0;             ///< of all weights
  int64_t plane() const { return 4 * rows * pitch; }
};

/// A config of hopper_ws with everything that follows from it for one problem. M and N are those of wgmma:
/// with `swap` it computes the transpose of D, so that M counts columns of D and N its rows. With a gate
/// those are the columns of both weights, two for each of D.
struct HopperTiling {
  HopperTiling(const Gemm&, const Config&);
  /// How what the gate makes of the sums is stored: half the columns. Itself without a gate.
  HopperTiling of_products() const;

  int64_t bm, bn, slices, stages, consumers;
  bool pingpong, swap, promote;
  int64_t cluster_m, cluster_n, cluster_k, splits;
  bool stream_k, whole_first;
  int64_t group;
  bool dependent, prefetch;
  int64_t align_a, align_b, align_d;

  int64_t bk_slice, bk;   ///< elements of K in 128 bytes; in a stage
  int64_t m, n;           ///< of wgmma
  int64_t warpgroup_rows; ///< of M that one warpgroup has
  int64_t weights;        ///< matrices in B: two with a gate
  int64_t tiles_m, tiles_n, clusters_m, clusters_n, tiles_k;
  int64_t split_tiles; ///< tiles of K of a split; some may have one less
  HopperPartials partials;
  HopperTile left, right; ///< wgmma's first operand, along M, and its second one, along N
  int64_t stage_bytes;
  HopperStaging staging;
  int64_t staging_offset, barriers_offset, groups_offset, shared; ///< bytes
  int64_t threads;
  int64_t producer_registers = 0, consumer_registers = 0; ///< 0: as the block starts
  WarpgroupMma mma;
  GpuPack pack; ///< of operands that TMA cannot address or wgmma cannot multiply as they are

  int64_t cluster() const { return cluster_m * cluster_n * cluster_k; }
  int64_t sharing() const {
    return cluster_m * cluster_n;
  } ///< blocks of a cluster that may load for each other
  bool split() const { return splits > 1; }
  int64_t parts() const { return splits * cluster_k; } ///< of the sum over K
  /// The kernel starts while its predecessor ends: the call before, or the launch that packs.
  bool waits() const { return dependent || pack.any(); }
  /// The same of its launch: with stream_k it waits on its way, for the launch that clears flags.
  bool starts_early() const { return waits() || stream_k; }
  bool stores_tiles() const { return align_d >= 16 && parts() == 1 && !staging.by_threads; } ///< by TMA
  /// A thread's sums of each weight of a gate.
  std::vector<Values> by_weight(const Values& sums) const;
  void check() const; ///< throws Error for a config that is not legal, and whose kernel would wait for copies
                      ///< that nobody makes
  /// Warps, or with swap warpgroups, that have buffers of their own.
  int64_t stagers() const { return consumers * (swap ? 1 : 4); }
  int64_t m_tiles() const { return warpgroup_rows / 64; }
  int64_t sums() const { return m_tiles() * bn / 2; } ///< registers of a thread
  /// A barrier for each buffer that is read: its bytes have arrived.
  int64_t read_barriers() const { return staging.reads.empty() ? 0 : stagers() * staging.buffers; }
  int64_t read_barriers_offset() const { return barriers_offset + 16 * stages; }
  /// Tiles of clusters of all splits and batch entries.
  int64_t work(const Gemm& p) const { return clusters_m * clusters_n * splits * p.batch; }
  /// Whether each block has one tile, where a device has a multiprocessor for each
  /// (hopper::most_blocks_of_one_tile). Nothing hides what comes before its main loop and behind it.
  bool one_tile(const Gemm& p) const {
    return !stream_k && parts() == 1 && !p.groups && !p.ranged() &&
           work(p) * cluster() <= hopper::most_blocks_of_one_tile;
  }
  /// Whether there are as many blocks as tiles, instead of some that walk from tile to tile. Not of packed
  /// operands, for which that took 1 % longer.
  bool once(const Gemm& p) const { return one_tile(p) && !pack.any(); }
  /// alpha and beta for all sums of a tile at once, where registers hold them.
  bool scales_at_once(const Gemm& p) const {
    return one_tile(p) && !p.gate && sums() <= (consumers == 1 ? 128 : swap ? 80 : 96);
  }
  /// Of D, in a tile of a cluster.
  int64_t cluster_rows() const { return swap ? bn * cluster_n : bm * cluster_m; }
  int64_t cluster_columns() const { return (swap ? bm * cluster_m : bn * cluster_n) / weights; }

private:
  HopperStaging staging_of(const Gemm&) const;
  bool stores_few(const Gemm&, const HopperStaging&) const;
  void set_buffers(const Gemm&);
  void set_edges(const Gemm&);
};

/// The epilogue's length, in steps of the cheapest kind.
int64_t epilogue_length(const Gemm&);

class HopperWs : public GemmTemplate {
public:
  std::string name() const override { return "hopper_ws"; }
  int64_t revision() const override { return 6; } ///< asks for tensor maps ahead; consumers ask for stages
  /// 7: blocks of a cluster end otherwise; 8: and many sums are stored otherwise; 9: one tile a block
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
