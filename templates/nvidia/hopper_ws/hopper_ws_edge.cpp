#include "templates/nvidia/hopper_ws/hopper_ws_edge.h"

#include "templates/nvidia/hopper_ws/hopper_ws_config.h"

namespace deepgen {
namespace {

// Rows of boxes on an H200, and how many of these may lie beyond the matrix without a copy being slower.
constexpr int64_t kMostRows = 40;                             ///< any number
constexpr int64_t kHalf = 64, kBeyondHalf = 32, kBeyond = 16; ///< of boxes up to kHalf; of larger ones

constexpr int64_t kSwizzled = 8; ///< rows, after which the swizzle repeats: boxes end there
constexpr int64_t kMapBytes = 128;

int64_t may_lie_beyond(int64_t part_rows) { return part_rows <= kHalf ? kBeyondHalf : kBeyond; }

/// Whether what lies behind the last rows is beyond the matrix: behind a group of rows of A, and behind the
/// first weight of a gate, there are other rows.
bool ends_with_matrix(const Gemm& p, bool a) { return a ? p.groups == 0 : !p.gate; }

} // namespace

int64_t HopperEdge::box_rows(const Gemm& p, bool a, int64_t tile_rows, int64_t share) {
  const int64_t part_rows = tile_rows / share;
  if (!(a ? hopper::a_k_major(p) : hopper::b_k_major(p))) return 0; // its rows are K's
  if (part_rows <= kMostRows || !ends_with_matrix(p, a) || !p.ranged(a ? Size::m : Size::n)) return 0;
  int64_t rows = kMostRows;
  while (rows > kSwizzled && part_rows % rows != 0) rows -= kSwizzled;
  return rows;
}

HopperEdge::HopperEdge(HopperIr& ir, const HopperTile& tile, Value map, Value first, Value part,
                       const SizeValue& extent)
    : ir(ir), tile(tile), extent(extent) {
  const int64_t part_rows = tile.part_rows();
  for (int64_t i = 0; i < tile.share; ++i) {
    Value rows = part_at(ir.add(first, i * part_rows)).rows;
    rows_ = i ? ir.add(rows_, rows) : rows;
  }
  const Part own = part_at(tile.share > 1 ? ir.add(first, ir.mul(part, part_rows)) : first);
  map_ = ir.select(own.whole, map, ir.offset(map, kMapBytes));
  boxes_ = ir.select(own.whole, ir.c(1), own.boxes);
}

HopperEdge::Part HopperEdge::part_at(Value first) const {
  const int64_t all = tile.part_rows();
  Value inside = ir.min(ir.max(ir.sub(ir.c(extent), first), ir.c(0)), ir.c(all));
  Value whole = ir.at_least(inside, all - may_lie_beyond(all));
  Value boxes = ir.divide(ir.add(inside, tile.edge_rows - 1), tile.edge_rows);
  return {whole, boxes, ir.select(whole, ir.c(all), ir.mul(boxes, tile.edge_rows))};
}

void HopperEdge::load(Value first, Value k, Value entry, Value to, Value full, Value blocks) const {
  ir.rolled_loop(ir.c(0), boxes_, 1, [&](Value i) {
    Values at = {k, ir.add(first, ir.mul(i, tile.edge_rows))};
    if (entry) at.push_back(entry);
    ir.load_tile(map_, ir.add(to, ir.mul(i, tile.edge_rows * hopper::kSliceBytes)), full, at, blocks);
  });
}

} // namespace deepgen
