#include "templates/nvidia/hopper_ws/hopper_ws_edge.h"

#include "templates/ir/hopper_ir.h"
#include "templates/nvidia/hopper_ws/hopper_ws_config.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr int64_t kSmall = 24;   ///< rows: as fast is such a box, whatever lies beyond (an H200)
constexpr int64_t kSwizzled = 8; ///< rows, after which the swizzle repeats: boxes end there
constexpr int64_t kMapBytes = 128;

/// Of a fixed size: by how many rows the last tiles reach beyond.
int64_t rows_beyond(int64_t extent, const HopperEdge::Tiles& t) {
  return round_up(extent, t.rows * t.along) - extent;
}

/// Of a fixed size. Only one part has rows on both sides of the matrix's end: its box ends there.
int64_t rows_of_fixed(int64_t extent, const HopperEdge::Tiles& t) {
  const int64_t part_rows = t.part_rows(), rest = extent % part_rows;
  if (rows_beyond(extent, t) < kSwizzled) return 0;
  return rest ? round_up(rest, kSwizzled) : part_rows;
}

/// Whether what lies behind the last rows is beyond the matrix: behind a group of rows of A, and behind the
/// first weight of a gate, there are other rows.
bool ends_with_matrix(const Gemm& p, bool a) { return a ? p.groups == 0 : !p.gate; }

} // namespace

int64_t HopperEdge::box_rows(const Gemm& p, bool a, const Tiles& t) {
  if (!(a ? hopper::a_k_major(p) : hopper::b_k_major(p))) return 0; // its rows are K's
  if (t.part_rows() <= kSmall || !ends_with_matrix(p, a)) return 0;
  if (p.ranged(a ? Size::m : Size::n)) return t.part_rows();
  return rows_of_fixed(a ? p.m : p.n, t);
}

bool HopperEdge::skips_parts(const Gemm& p, bool a, const Tiles& t) {
  return p.ranged(a ? Size::m : Size::n) || rows_beyond(a ? p.m : p.n, t) >= t.part_rows();
}

HopperEdge::HopperEdge(HopperIr& ir, const HopperTile& tile, Value map, Value first, Value part,
                       const SizeValue& extent)
    : ir(ir), tile(tile), extent(extent), map_(map) {
  const int64_t part_rows = tile.part_rows();
  for (int64_t i = 0; i < tile.share; ++i) {
    Value rows = part_at(ir.add(first, i * part_rows)).rows;
    rows_ = i ? ir.add(rows_, rows) : rows;
  }
  own_ = part_at(tile.share > 1 ? ir.add(first, ir.mul(part, part_rows)) : first);
}

HopperEdge::Part HopperEdge::part_at(Value first) const {
  const int64_t all = tile.part_rows(), least = all - kSwizzled + 1; // of a whole box
  Value whole, any, rows;
  if (extent.is_constant()) {
    whole = ir.less(first, extent.constant() - least + 1), rows = ir.c(tile.edge_rows);
    if (tile.edge_skips) any = ir.less(first, extent.constant()), rows = ir.select(any, rows, ir.c(0));
  } else {
    Value inside = ir.min(ir.max(ir.sub(ir.c(extent), first), ir.c(0)), ir.c(all));
    whole = ir.at_least(inside, least), any = ir.at_least(inside, 1);
    rows = ir.mul(ir.divide(ir.add(inside, kSwizzled - 1), kSwizzled), kSwizzled);
  }
  return {whole, any, ir.select(whole, ir.c(all), rows)};
}

Value HopperEdge::last_map(HopperIr& ir, Value map) { return ir.offset(map, kMapBytes); }

void HopperEdge::load(Value first, Value k, Value entry, Value to, Value full, Value blocks) const {
  Values at = {k, first};
  if (entry) at.push_back(entry);
  // Nothing but conditions is kept through the main loop: of few registers a map would take two.
  const auto last = [&] { ir.load_tile(last_map(ir, map_), to, full, at, blocks); };
  ir.branch(
      own_.whole, [&] { ir.load_tile(map_, to, full, at, blocks); },
      [&] {
        if (own_.any) return ir.branch(own_.any, last);
        last();
      });
}

} // namespace deepgen
