// Tiles that reach beyond the last row of a matrix. TMA is two to five times slower with boxes of which many
// rows lie beyond it, when all multiprocessors copy such boxes (benchmarks/gpu/ranges.md, "Copies beyond the
// matrix"). So the part of such a tile that has the last rows comes in a box that ends with them, by a second
// tensor map of the operand, and parts beyond are not copied. Where the size has a range, the runtime tells
// the second map's rows at each call. What is in shared memory instead is multiplied, too, but a row of it
// reaches no other row of the sums, and no element of D.
#pragma once

#include "templates/nvidia/hopper_ws/hopper_ws.h"

namespace deepgen {

class HopperEdge {
public:
  /// Of the tile whose first row is `first`, in a matrix of `extent` rows. `map`: the operand's, and the
  /// second one behind it. `part`: the block's number among those that share the tile; null: it has it alone.
  HopperEdge(HopperIr&, const HopperTile&, Value map, Value first, Value part, const SizeValue& extent);

  /// Rows of the tile that come to each block that shares it, from all of them.
  Value rows() const { return rows_; }
  /// The block's copies of its part, which begins with row `first` and stays at `to`, for 128 bytes of K.
  void load(Value first, Value k, Value entry, Value to, Value full, Value blocks) const;

  /// Of an operand's two maps, the second one: of last boxes.
  static Value last_map(HopperIr&, Value map);

  /// How blocks tile an operand: `rows` has each tile, which `share` blocks have in common, and a cluster has
  /// `along` of such tiles.
  struct Tiles {
    int64_t rows, share, along;
    int64_t part_rows() const { return rows / share; }
  };
  /// HopperTile::edge_rows, of A or B.
  static int64_t box_rows(const Gemm&, bool a, const Tiles&);
  /// HopperTile::edge_skips.
  static bool skips_parts(const Gemm&, bool a, const Tiles&);

private:
  struct Part {
    Value whole; ///< i1: it comes by the first map
    Value any;   ///< i1: it comes by the second one, else. Null: always
    Value rows;  ///< that come
  };
  Part part_at(Value first) const;

  HopperIr& ir;
  const HopperTile& tile;
  const SizeValue extent;
  Value map_;
  Part own_;
  Value rows_;
};

} // namespace deepgen
