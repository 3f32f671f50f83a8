// The loops of cpu_dot around its micro-kernels: batch, blocks of N, M and K, packing, tiles.
#include "base/problem/packed_b.h"
#include "templates/core/sizes.h"
#include "templates/cpu/cpu_cut.h"
#include "templates/cpu/cpu_dot.h"
#include "templates/cpu/cpu_dot_kernel.h"
#include "templates/cpu/cpu_dot_pack.h"
#include "templates/cpu/micro_kernel.h"

namespace deepgen {
namespace {

class DotLoops {
public:
  DotLoops(Ir& builder, const Gemm& problem, const DotTiling& tiling)
      : ir(builder), words(builder, tiling.dot), p(problem), t(tiling) {}

  void emit(Value block) {
    args = block;
    zero = ir.constant(0), one = ir.constant(1);
    a_base = arg("a"), b_base = arg("b"), lda = arg("lda"), ldb = arg("ldb");
    m0 = arg("m0"), m1 = arg("m1"), n0 = arg("n0"), n1 = arg("n1");
    Value scratch = arg("workspace");
    if (t.dot.tiles()) begin_tiles(ir, scratch);
    a_panels = ir.at(scratch, t.config_words);
    b_panels = ir.at(a_panels, round_up(t.a_words(), 64));
    sums = ir.at(b_panels, round_up(t.b_words(), 64));
    if (p.batch == 1)
      with_batch_entry(zero);
    else
      ir.loop(arg("b0"), arg("b1"), 1, [&](Value entry) { with_batch_entry(entry); });
    if (t.dot.tiles()) end_tiles(ir);
  }

private:
  Ir& ir;
  Words words;
  const Gemm& p;
  const DotTiling& t;
  Value args, a_base, b_base, lda, ldb, m0, m1, n0, n1, zero, one, a_panels, b_panels, sums;
  Value a, b, entry; ///< of the batch entry

  Value arg(const std::string& name) { return load_arg(ir, p, args, name); }

  struct KBlock {
    Value start, depth, first, last;
  };
  struct Range {
    Value from, to;
  };

  void with_batch_entry(Value e) {
    a = a_base, b = b_base, entry = e;
    if (p.batch > 1) {
      a = words.at(p.a, a, ir.mul(e, arg("stride_a")));
      b = t.packed_b ? bytes_on(b, ir.mul(e, packed_layout(p).entry_bytes))
                     : words.at(p.b, b, ir.mul(e, arg("stride_b")));
    }
    if (t.a_once()) k_blocks([&](const KBlock& k) { pack_a({m0, m1}, k); });
    blocks(n0, n1, t.nc_tiles, t.n_tiles, [&](Range j) {
      if (t.b_panel) k_blocks([&](const KBlock& k) { pack_b(j, k); });
      blocks(m0, m1, t.mc_tiles, t.m_tiles, [&](Range i) {
        if (t.by_columns) return columns(i, j);
        k_blocks([&](const KBlock& k) {
          if (t.a_panel && !t.a_once()) pack_a(i, k);
          tiles(i, j, k);
        });
      });
    });
  }

  /// So the sums of one column of tiles wait for the next block of K, and not those of all: they stay near.
  void columns(Range i, Range j) {
    if (t.a_panel && !t.a_once()) k_blocks([&](const KBlock& k) { pack_a(i, k); });
    ir.loop(j.from, j.to, 1, [&](Value n) {
      k_blocks([&](const KBlock& k) { ir.loop(i.from, i.to, 1, [&](Value m) { visit(m, n, i, j, k); }); });
    });
  }

  void blocks(Value from, Value to, int64_t step, int64_t tiles, const std::function<void(Range)>& body) {
    if (step >= tiles) return body({from, to});
    ir.loop(from, to, step, [&](Value start) { body({start, ir.min(ir.add(start, step), to)}); });
  }

  void k_blocks(const std::function<void(const KBlock&)>& body) {
    if (t.k_blocks == 1) return body({zero, ir.constant(p.k), one, one});
    Value size = ir.constant(p.k);
    ir.loop(zero, size, t.kc, [&](Value start) {
      Value rest = ir.sub(size, start);
      Value depth = ir.min(rest, ir.constant(t.kc));
      body({start, depth, ir.widen(ir.equal(start, zero)), ir.widen(ir.equal(depth, rest))});
    });
  }

  /// Runs `body` with the extent of tile `index`: `rest` for the last tile, `whole` for the others.
  void by_extent(Value index, int64_t tiles, int64_t whole, int64_t rest,
                 const std::function<void(int64_t)>& body) {
    if (whole == rest || tiles == 1) return body(rest);
    ir.branch(ir.equal(index, ir.constant(tiles - 1)), [&] { body(rest); }, [&] { body(whole); });
  }

  Value b_panel(Value j, Value j0, const KBlock& k) {
    Value block = t.k_blocks == 1 ? zero : ir.shift_right(k.start, t.kc);
    Value place = t.b_in_place() ? zero : ir.sub(j, j0);
    Value number = t.by_columns ? ir.add(ir.mul(place, t.k_blocks), block) // as they are multiplied
                                : ir.add(ir.mul(block, t.b_panels), place);
    return ir.at(b_panels, ir.mul(number, t.b_panel));
  }
  Value a_panel(Value i, Value i0, const KBlock& k) {
    Value place = t.a_in_place() ? zero : ir.sub(i, i0);
    if (t.a_of_all_k() && t.k_blocks > 1)
      place = ir.add(ir.mul(ir.shift_right(k.start, t.kc), t.a_panels), place);
    return ir.at(a_panels, ir.mul(place, t.a_panel));
  }
  Value a_source(Value i, const KBlock& k) {
    Value row = ir.mul(i, t.mr);
    return p.a_transposed() ? words.at(p.a, words.at(p.a, a, ir.mul(k.start, lda)), row)
                            : words.at(p.a, words.at(p.a, a, ir.mul(row, lda)), k.start);
  }
  /// `more`: columns further right.
  Value b_source(Value j, const KBlock& k, int64_t more = 0) {
    Value column = ir.add(ir.mul(j, t.dr), more);
    return p.b_transposed() ? words.at(p.b, words.at(p.b, b, ir.mul(column, ldb)), k.start)
                            : words.at(p.b, words.at(p.b, b, ir.mul(k.start, ldb)), column);
  }

  Value bytes_on(Value base, Value offset) { return words.at(Type::i8, base, offset); }
  /// Of a B that is packed ahead: where the panel of tile j begins, at the tile's first column.
  Value packed_panel(Value j) {
    const PackedLayout x = packed_layout(p);
    const int64_t tiles = x.width() / t.dr, bytes = x.group * x.element;
    Value at = ir.mul(ir.shift_right(j, tiles), x.panel_bytes);
    return bytes_on(b, ir.add(at, ir.mul(ir.remainder(j, tiles), t.dr * bytes)));
  }
  /// AMX takes a block of K where it lies.
  Value packed_block(Value j, const KBlock& k) {
    const PackedLayout x = packed_layout(p);
    return bytes_on(packed_panel(j), ir.add(ir.mul(ir.shift_right(k.start, x.group), x.row_bytes()), x.sums));
  }

  /// What a tile asks for ahead: its share of the next block. Blocks follow each other in memory.
  Value ahead(Value m, Value n, const KBlock& k) {
    const PackedLayout x = packed_layout(p);
    const int64_t tiles = x.width() / t.dr, group = t.dot.group();
    Value rows = ir.shift_right(ir.add(k.depth, group - 1), group);
    Value steps = t.shares == 1 ? ir.constant(t.prefetch) : rows;
    Value panel = bytes_on(b, ir.mul(ir.shift_right(n, tiles), x.panel_bytes));
    Value next = bytes_on(panel, ir.mul(ir.add(ir.shift_right(k.start, group), steps), x.row_bytes()));
    if (t.shares == 1) return next;
    Value share = ir.add(ir.mul(ir.remainder(n, tiles), t.m_tiles), m);
    const int64_t rows_at_once = t.dot.tiles() ? t.isa.lanes() : t.unroll;
    return ir.at(next, ir.mul(ir.mul(share, rows), t.lines * kLineWords / rows_at_once));
  }

  /// Tiles of a block that are packed: all, or of those that are read in place the last one, which is ragged.
  void packed(Range r, int64_t tiles, bool in_place, const std::function<void(Value)>& body) {
    if (!in_place) return ir.loop(r.from, r.to, 1, body);
    Value end = ir.constant(tiles);
    ir.branch(ir.equal(r.to, end), [&] { body(ir.sub(end, one)); });
  }

  void pack_b(Range j, const KBlock& k) {
    const int64_t shift = t.dot.shifts_a() ? t.nr : 0, group = t.dot.group();
    packed(j, t.n_tiles, t.b_in_place(), [&](Value tile) {
      Value panel = b_panel(tile, j.from, k), to = ir.at(panel, shift);
      by_extent(tile, t.n_tiles, t.dr, t.n_rest, [&](int64_t columns) {
        if (t.b_in_place() && columns == t.dr) return;
        const DotPanel shape{
            p.b,      t.dr, columns, t.nr, !p.b_transposed(), t.b_in_place(), false, t.k_last % t.chunk,
            padding()};
        const std::string name = dot_pack_function(ir, t.dot, shape);
        for (int64_t h = 0; h < t.halves; ++h)
          ir.call(name, {b_source(tile, k, h * p.n), ldb,
                         ir.at(to, h * t.dr * (t.b_in_place() ? t.isa.lanes() : 1)), k.depth});
      });
      if (shift)
        ir.call(dot_shift_function(ir, t.dot, t.nr),
                {to, ir.shift_right(ir.add(k.depth, group - 1), group), panel});
    });
  }

  /// Groups by which panels of words are longer than the last block, so that AMX takes whole tiles.
  int64_t padding() const {
    const int64_t group = t.dot.group();
    return t.dot.tiles() ? round_up(t.k_last, t.chunk) / group - ceil_div(t.k_last, group) : 0;
  }

  void pack_a(Range i, const KBlock& k) {
    packed(i, t.m_tiles, t.a_in_place(), [&](Value tile) {
      by_extent(tile, t.m_tiles, t.mr, t.m_rest, [&](int64_t rows) {
        if (t.a_in_place() && rows == t.mr) return;
        const DotPanel shape{p.a,
                             t.mr,
                             rows,
                             t.mr,
                             p.a_transposed(),
                             t.a_by_rows(),
                             t.dot.shifts_a(),
                             t.k_last % (t.isa.lanes() * t.dot.of_a().group()),
                             0};
        ir.call(dot_pack_function(ir, t.dot.of_a(), shape),
                {a_source(tile, k), lda, a_panel(tile, i.from, k), k.depth});
      });
    });
  }

  void tiles(Range i, Range j, const KBlock& k) {
    const Range outer = t.a_stays ? i : j, inner = t.a_stays ? j : i;
    ir.loop(outer.from, outer.to, 1, [&](Value x) {
      ir.loop(inner.from, inner.to, 1,
              [&](Value y) { t.a_stays ? visit(x, y, i, j, k) : visit(y, x, i, j, k); });
    });
  }

  void visit(Value m, Value n, Range i, Range j, const KBlock& k) {
    by_extent(m, t.m_tiles, t.mr, t.m_rest, [&](int64_t rows) {
      by_extent(n, t.n_tiles, t.dr, t.n_rest, [&](int64_t columns) { tile(m, n, i, j, k, {rows, columns}); });
    });
  }

  void tile(Value m, Value n, Range i, Range j, const KBlock& k, const DotTile& shape) {
    Value scratch = sums;
    // Every tile of the block, or of its column, has its own sums until they are finished.
    if (t.k_blocks > 1) {
      Value place = ir.sub(m, i.from);
      if (!t.by_columns) place = ir.add(ir.mul(place, t.nc_tiles), ir.sub(n, j.from));
      scratch = ir.at(sums, ir.mul(place, t.sums_tile));
    }
    const std::string name = t.dot.tiles() ? dot_tiles_kernel(ir, p, t, shape) : dot_kernel(ir, p, t, shape);
    const bool a_packed = t.pack_a || (t.a_in_place() && shape.rows < t.mr);
    const bool b_packed = t.form == DotForm::panel || (t.b_in_place() && shape.columns < t.dr);
    Value a_at = a_packed ? a_panel(m, i.from, k) : a_source(m, k);
    Value b_at = t.packed_b && t.dot.tiles() ? packed_block(n, k)
                 : t.packed_b                ? packed_panel(n)
                 : b_packed                  ? b_panel(n, j.from, k)
                                             : b_source(n, k);
    Values arguments = {args,
                        a_at,
                        lda,
                        b_at,
                        t.packed_b ? ir.shift_right(k.start, t.dot.group()) : ldb,
                        k.depth,
                        k.first,
                        k.last,
                        scratch,
                        ir.mul(m, t.mr),
                        ir.mul(n, t.dr),
                        entry};
    if (t.asks_for_panel())
      arguments.push_back(
          ir.at(b_at, ir.add(ir.mul(ir.sub(m, i.from), t.steps() * t.lines * kLineWords), t.b_panel)));
    else if (t.lines)
      arguments.push_back(ahead(m, n, k));
    ir.call(name, arguments);
  }
};

} // namespace

Kernel CpuDot::emit(mlir::ModuleOp module, const Gemm& p, const std::string&, const Config& config) const {
  const DotTiling t(p, config);
  Ir ir(module, t.isa);
  ir.function(kernel_symbol, {ir.pointer}, false,
              [&](mlir::ValueRange parameters) { DotLoops(ir, p, t).emit(parameters[0]); });
  Kernel kernel;
  kernel.problem = p;
  kernel.choice = {name(), config};
  kernel.isa = t.isa_code();
  kernel.args = gemm_args(p);
  kernel.tiles_m = t.m_tiles, kernel.tiles_n = t.n_tiles, kernel.tiles_b = p.batch;
  kernel.grain_m = t.mc_tiles, kernel.grain_n = t.nc_tiles;
  if (has_cut(p)) kernel.cut = int64_t(cut_of(config));
  kernel.workspace = t.workspace_bytes();
  kernel.packed_b = packed_layout_text(p);
  return kernel;
}

} // namespace deepgen
