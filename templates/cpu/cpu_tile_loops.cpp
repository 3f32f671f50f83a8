// The loops of cpu_tile around its micro-kernels: batch, blocks of N, K and M, packing, tiles.
#include "base/problem/packed_b.h"
#include "templates/cpu/cpu_cut.h"
#include "templates/cpu/cpu_tile.h"
#include "templates/cpu/micro_kernel.h"
#include "templates/cpu/pack.h"

#include <algorithm>
#include <map>

namespace deepgen {
namespace {

class LoopNest {
public:
  LoopNest(Ir& builder, const Gemm& problem, const CpuTiling& tiling) : ir(builder), p(problem), t(tiling) {}

  void emit(Value block) {
    args = block;
    for (auto [name, value] : {std::pair{"a", &a_base},
                               {"b", &b_base},
                               {"c", &c_base},
                               {"d", &d_base},
                               {"bias", &bias},
                               {"workspace", &a_panels},
                               {"lda", &lda},
                               {"ldb", &ldb},
                               {"ldc", &ldc},
                               {"ldd", &ldd},
                               {"m0", &m0},
                               {"m1", &m1},
                               {"n0", &n0},
                               {"n1", &n1}})
      *value = arg(name);
    b_panels = ir.at(a_panels, padded(t.a_elements));
    if (t.sums_elements) sums = ir.at(b_panels, padded(t.b_elements));
    zero = ir.constant(0), one = ir.constant(1);
    take_sizes();
    if (p.batch == 1) return with_batch_entry(zero);
    ir.loop(arg("b0"), arg("b1"), 1, [&](Value entry) { with_batch_entry(entry); });
  }

  /// Packed blocks start on cache lines.
  static int64_t padded(int64_t elements) { return (elements + 63) / 64 * 64; }

private:
  Ir& ir;
  const Gemm& p;
  const CpuTiling& t;
  Value args, a_base, b_base, c_base, d_base, bias, a_panels, b_panels, lda, ldb, ldc, ldd, m0, m1, n0, n1,
      zero, one;
  Value a, b, c, d; ///< of the batch entry
  Value sums;       ///< tiles of a block of D, one behind the other
  /// Of ranges, at this call: the index of the last tile, and its rows or columns.
  Value m_last, m_rest, n_last, n_rest, n_size, k_size;
  std::map<std::string, Value> operands; ///< tile_operands(), of the batch entry

  Value arg(const std::string& name) { return load_arg(ir, p, args, name); }

  struct KBlock {
    Value start, depth, first, last;
  };

  bool ranged(Size size) const { return p.ranged(size); }

  /// None of them is 0, but for K.
  void take_sizes() {
    const auto tiles = [&](Value size, int64_t tile, Value& last, Value& rest) {
      last = ir.shift_right(ir.sub(size, one), tile);
      rest = ir.sub(size, ir.mul(last, tile));
    };
    if (ranged(Size::m)) tiles(arg("m"), t.mr, m_last, m_rest);
    if (ranged(Size::n)) n_size = arg("n"), tiles(n_size, t.dr, n_last, n_rest);
    if (ranged(Size::k)) k_size = arg("k");
  }

  void with_batch_entry(Value entry) {
    a = a_base, b = b_base, c = c_base, d = d_base;
    if (p.batch > 1)
      for (auto [matrix, stride] :
           {std::pair{&a, "stride_a"}, {&b, "stride_b"}, {&c, "stride_c"}, {&d, "stride_d"}})
        *matrix = ir.at(*matrix, t.packed_b && matrix == &b
                                     ? ir.mul(entry, packed_elements(&PackedLayout::entry_bytes))
                                     : ir.mul(entry, arg(stride)));
    for (const EpilogueOperand& operand : tile_operands(p)) {
      const std::string name = operand.name;
      operands[name] = arg(name);
      if (p.batch > 1 && operand.shape == OperandShape::matrix)
        operands[name] = ir.at(operands[name], ir.mul(entry, arg("stride_" + name)));
    }
    n_blocks([&](Value j0, Value j1) {
      if (t.loops == 2) {
        k_blocks([&](const KBlock& k) { pack_b(j0, j1, k); });
        m_blocks([&](Value i0, Value i1) { k_blocks([&](const KBlock& k) { block(i0, i1, j0, j1, k); }); });
      } else if (t.sums_elements) { // K inside, so that only a block of D has unfinished sums
        m_blocks([&](Value i0, Value i1) {
          k_blocks([&](const KBlock& k) {
            pack_b(j0, j1, k);
            block(i0, i1, j0, j1, k);
          });
        });
      } else {
        k_blocks([&](const KBlock& k) {
          pack_b(j0, j1, k);
          m_blocks([&](Value i0, Value i1) { block(i0, i1, j0, j1, k); });
        });
      }
    });
  }

  using Range = std::function<void(Value, Value)>;
  void blocks(Value from, Value to, int64_t step, int64_t tiles, const Range& body) {
    if (step >= tiles) return body(from, to);
    ir.loop(from, to, step, [&](Value start) { body(start, ir.min(ir.add(start, step), to)); });
  }
  void n_blocks(const Range& body) { blocks(n0, n1, t.nc_tiles, t.n_tiles, body); }
  void m_blocks(const Range& body) { blocks(m0, m1, t.mc_tiles, t.m_tiles, body); }

  void k_blocks(const std::function<void(const KBlock&)>& body) {
    Value size = ranged(Size::k) ? k_size : ir.constant(p.k);
    if (t.k_blocks == 1) return body({zero, size, one, one});
    // Without products there is one block, of none.
    Value end = ranged(Size::k) ? ir.select(ir.equal(size, zero), one, size) : size;
    ir.loop(zero, end, t.kc, [&](Value start) {
      Value rest = ir.sub(size, start);
      Value depth = ir.min(rest, ir.constant(t.kc));
      body({start, depth, ir.widen(ir.equal(start, zero)), ir.widen(ir.equal(depth, rest))});
    });
  }

  /// Runs `body` with the extent of tile `index`, which is `rest` for the last tile and `whole` for the
  /// others.
  void by_extent(Value index, int64_t tiles, int64_t whole, int64_t rest,
                 const std::function<void(int64_t)>& body) {
    if (whole == rest || tiles == 1) return body(rest);
    ir.branch(ir.equal(index, ir.constant(tiles - 1)), [&] { body(rest); }, [&] { body(whole); });
  }

  using Extent = std::function<void(int64_t)>;
  void by_rows(Value i, const Extent& body) {
    if (!ranged(Size::m)) return by_extent(i, t.m_tiles, t.mr, t.m_rest, body);
    ir.choose(extent(i, m_last, t.mr, m_rest), 1, t.mr, body);
  }
  /// Rows or columns of tile `index`.
  Value extent(Value index, Value last, int64_t whole, Value rest) {
    return ir.select(ir.equal(index, last), rest, ir.constant(whole));
  }

  /// `body` for the columns of tile j. Where the last tile has a number of them that is known at run time:
  /// for as many whole vectors, with the columns of the last vector.
  void by_columns(Value j, const std::function<void(int64_t, Value)>& body) {
    const auto known = [&](int64_t columns) { body(columns, Value()); };
    if (!ranged(Size::n)) return by_extent(j, t.n_tiles, t.dr, t.n_rest, known);
    Value columns = extent(j, n_last, t.dr, n_rest);
    if (t.dot) return ir.choose(columns, 1, t.dr, known);
    const int64_t lanes = t.isa.lanes();
    const auto ragged = [&] {
      Value vectors = ir.shift_right(ir.add(columns, lanes - 1), lanes);
      Value last = ir.sub(columns, ir.mul(ir.sub(vectors, one), lanes));
      ir.choose(vectors, 1, t.dr / lanes, [&](int64_t count) { body(count * lanes, last); });
    };
    ir.branch(ir.equal(columns, ir.constant(t.dr)), [&] { known(t.dr); }, ragged);
  }

  /// Calls the function that packs a panel: of all that it has room for, or of what exists.
  void pack(Value index, Value last, int64_t whole, Value rest, PanelShape shape,
            const std::function<void(const std::string&, Values)>& call) {
    ir.branch(
        ir.equal(index, last),
        [&] {
          shape.ragged = true;
          call(pack_function(ir, shape), {rest});
        },
        [&] {
          shape.ragged = false, shape.valid = whole;
          call(pack_function(ir, shape), {});
        });
  }

  Value b_panel(Value j, Value j0, const KBlock& k) {
    Value offset = ir.mul(ir.sub(j, j0), ir.mul(k.depth, t.nr));
    // loops=2 keeps all blocks of K, one behind the other.
    if (t.loops == 2) offset = ir.add(offset, ir.mul(ir.mul(k.start, ir.sub(n1, n0)), t.nr));
    return ir.at(b_panels, offset);
  }
  int64_t packed_elements(int64_t PackedLayout::* bytes) const {
    return packed_layout(p).*bytes / size_of(p.b);
  }
  /// A tile's part of its panel in a B that is packed ahead.
  Value packed_panel(Value j, const KBlock& k) {
    const int64_t tiles = packed_layout(p).width() / t.dr;
    Value panel = ir.mul(ir.shift_right(j, tiles), packed_elements(&PackedLayout::panel_bytes));
    return ir.at(ir.at(b, panel), ir.add(ir.mul(k.start, t.pitch), ir.mul(ir.remainder(j, tiles), t.dr)));
  }
  /// What a tile asks for ahead: its share of the next block. Blocks follow each other in memory.
  Value ahead(Value i, Value j, const KBlock& k) {
    const int64_t tiles = packed_layout(p).width() / t.dr;
    Value panel = ir.at(b, ir.mul(ir.shift_right(j, tiles), packed_elements(&PackedLayout::panel_bytes)));
    Value steps = t.shares == 1 ? ir.constant(t.prefetch) : k.depth;
    Value next = ir.at(panel, ir.mul(ir.add(k.start, steps), t.pitch));
    if (t.shares == 1) return next;
    Value share = ir.remainder(j, tiles);
    if (!ranged(Size::m)) share = ir.add(ir.mul(share, t.m_tiles), i);
    const int64_t each = t.lines * 64 / size_of(p.b) / t.unroll; // elements for a step of K
    return ir.at(next, ir.mul(ir.mul(share, k.depth), each));
  }
  Value a_panel(Value i, Value i0, const KBlock& k) {
    Value place = ir.sub(i, i0);
    return ir.at(a_panels, t.dot ? ir.mul(place, t.a_depth * t.mr) : ir.mul(place, ir.mul(k.depth, t.mr)));
  }
  Value a_source(Value i, const KBlock& k) {
    Value m = ir.mul(i, t.mr);
    return p.a_transposed() ? ir.at(ir.at(a, ir.mul(k.start, lda)), m)
                            : ir.at(ir.at(a, ir.mul(m, lda)), k.start);
  }
  Value b_source(Value j, const KBlock& k) { return b_at(ir.mul(j, t.dr), k); }
  /// Of the second weight of a gate, N columns further right.
  Value b_source_up(Value j, const KBlock& k) {
    Value first = ir.mul(j, t.dr);
    return b_at(ranged(Size::n) ? ir.add(first, n_size) : ir.add(first, p.n), k);
  }
  Value b_at(Value column, const KBlock& k) {
    return p.b_transposed() ? ir.at(ir.at(b, ir.mul(column, ldb)), k.start)
                            : ir.at(ir.at(b, ir.mul(k.start, ldb)), column);
  }

  void pack_b(Value j0, Value j1, const KBlock& k) {
    if (!t.pack_b) return;
    const auto call = [&](Value j, const std::string& name, const Values& more) {
      Values arguments = {b_source(j, k), ldb, b_panel(j, j0, k), k.depth};
      arguments.append(more);
      ir.call(name, arguments);
      if (!p.gate) return;
      arguments[0] = b_source_up(j, k), arguments[2] = ir.at(b_panel(j, j0, k), t.dr);
      ir.call(name, arguments);
    };
    PanelShape shape{t.dr, t.dr, !p.b_transposed(), t.dr == t.nr ? 0 : t.nr};
    ir.loop(j0, j1, 1, [&](Value j) {
      if (ranged(Size::n))
        return pack(j, n_last, t.dr, n_rest, shape,
                    [&](const std::string& name, const Values& more) { call(j, name, more); });
      by_extent(j, t.n_tiles, t.dr, t.n_rest, [&](int64_t columns) {
        shape.valid = columns;
        call(j, pack_function(ir, shape), {});
      });
    });
  }
  void pack_a(Value i0, Value i1, const KBlock& k) {
    if (!t.pack_a) return;
    const auto call = [&](Value i, const std::string& name, const Values& more) {
      Values arguments = {a_source(i, k), lda, a_panel(i, i0, k), k.depth};
      arguments.append(more);
      ir.call(name, arguments);
    };
    PanelShape shape{t.mr, t.mr, p.a_transposed()};
    shape.of_vectors = t.dot;
    ir.loop(i0, i1, 1, [&](Value i) {
      if (ranged(Size::m))
        return pack(i, m_last, t.mr, m_rest, shape,
                    [&](const std::string& name, const Values& more) { call(i, name, more); });
      by_extent(i, t.m_tiles, t.mr, t.m_rest, [&](int64_t rows) {
        shape.valid = rows;
        call(i, pack_function(ir, shape), {});
      });
    });
  }

  void block(Value i0, Value i1, Value j0, Value j1, const KBlock& k) {
    pack_a(i0, i1, k);
    auto visit = [&](Value i, Value j) {
      Values arguments; // ahead of the choice where there are many
      if (ranged(Size::m) || ranged(Size::n)) arguments = tile_arguments(i, j, i0, j0, k);
      by_rows(i, [&](int64_t rows) {
        by_columns(j, [&](int64_t columns, Value ragged) {
          Values own = arguments.empty() ? tile_arguments(i, j, i0, j0, k) : arguments;
          if (ragged) own.push_back(ragged);
          if (t.lines) own.push_back(ahead(i, j, k));
          ir.call(micro_kernel(ir, p, tile_shape(rows, columns, bool(ragged))), own);
        });
      });
    };
    if (t.loops == 1)
      ir.loop(i0, i1, 1, [&](Value i) { ir.loop(j0, j1, 1, [&](Value j) { visit(i, j); }); });
    else
      ir.loop(j0, j1, 1, [&](Value j) { ir.loop(i0, i1, 1, [&](Value i) { visit(i, j); }); });
  }

  MicroTile tile_shape(int64_t rows, int64_t columns, bool ragged) const {
    MicroTile shape{rows, columns, t.mr, t.pitch, Access::panel, Access::panel};
    if (!t.pack_a) shape.a = p.a_transposed() ? Access::k_rows : Access::k_columns;
    if (!t.pack_b && !t.packed_b) shape.b = p.b_transposed() ? Access::k_columns : Access::k_rows;
    shape.unroll = t.unroll;
    if (t.prefetch == kNextTile)
      shape.next_rows = t.dr;
    else if (!t.packed_b)
      shape.prefetch = t.prefetch;
    shape.lines = t.lines;
    const int64_t step = t.unroll * (t.dot ? t.isa.lanes() : 1);
    shape.k_multiple = !ranged(Size::k) && p.k / (t.dot ? t.isa.lanes() : 1) % t.unroll == 0 &&
                       (t.k_blocks == 1 || t.kc % step == 0);
    shape.single_block = t.k_blocks == 1;
    shape.k_ragged = t.dot && ranged(Size::k);
    shape.k_tail = t.dot && !shape.k_ragged ? p.k % t.isa.lanes() : 0;
    shape.sums_ld = t.sums_ld;
    shape.ragged = ragged;
    return shape;
  }

  Values tile_arguments(Value i, Value j, Value i0, Value j0, const KBlock& k) {
    Value m = ir.mul(i, t.mr), n = ir.mul(j, t.dr);
    Values arguments = {args,
                        t.pack_a ? a_panel(i, i0, k) : a_source(i, k),
                        lda,
                        t.packed_b ? packed_panel(j, k)
                        : t.pack_b ? b_panel(j, j0, k)
                                   : b_source(j, k),
                        ldb,
                        ir.at(ir.at(d, ir.mul(m, ldd)), n),
                        ir.at(ir.at(c, ir.mul(m, ldc)), n),
                        ir.at(bias, n),
                        k.depth,
                        k.first,
                        k.last};
    if (t.sums_elements) arguments.push_back(tile_sums(i, j, i0, j0));
    for (const EpilogueOperand& operand : tile_operands(p)) {
      Value at = operands[operand.name];
      if (operand.shape == OperandShape::matrix)
        at = ir.at(at, ir.mul(m, arg(std::string("ld_") + operand.name)));
      arguments.push_back(ir.at(at, operand.shape == OperandShape::row ? m : n));
    }
    return arguments;
  }

  /// Every tile of the block has its own sums, unless they are finished at once.
  Value tile_sums(Value i, Value j, Value i0, Value j0) {
    if (t.k_blocks == 1) return sums;
    Value tile = ir.add(ir.mul(ir.sub(i, i0), t.nc_tiles), ir.sub(j, j0));
    return ir.at(sums, ir.mul(tile, t.mr * t.sums_ld));
  }
};

} // namespace

Kernel CpuTile::emit(mlir::ModuleOp module, const Gemm& p, const std::string&, const Config& config) const {
  const CpuTiling t(p, config);
  Ir ir(module, t.isa);
  ir.function(kernel_symbol, {ir.pointer}, false,
              [&](mlir::ValueRange parameters) { LoopNest(ir, p, t).emit(parameters[0]); });
  Kernel kernel;
  kernel.problem = p;
  kernel.choice = {name(), config};
  kernel.isa = t.isa.level;
  kernel.packed_b = packed_layout_text(p);
  kernel.args = gemm_args(p);
  kernel.tiles_m = t.m_tiles, kernel.tiles_n = t.n_tiles, kernel.tiles_b = p.batch;
  if (p.ranged(Size::m)) kernel.tile_rules[0] = {1, {t.mr, 0, 0, 0}};
  if (p.ranged(Size::n)) kernel.tile_rules[1] = {1, {0, t.dr, 0, 0}};
  if (p.ranged(Size::batch)) kernel.tile_rules[2] = {1, {0, 0, 0, 1}};
  kernel.grain_m = t.mc_tiles, kernel.grain_n = t.nc_tiles;
  if (has_cut(p)) kernel.cut = int64_t(cut_of(config));
  kernel.workspace = size_of(p.a) * (LoopNest::padded(t.a_elements) + LoopNest::padded(t.b_elements) +
                                     LoopNest::padded(t.sums_elements));
  return kernel;
}

} // namespace deepgen
