#include "templates/gpu/gpu_pack.h"

#include "templates/core/sizes.h"
#include "templates/ir/nv_ir.h"

namespace deepgen {
namespace {

constexpr int64_t kPackThreads = 256;
constexpr int64_t kLine = 128;      ///< bytes: rows of copies begin with a line of the caches
constexpr int64_t kAlignment = 256; ///< bytes, of copies in the workspace

} // namespace

GpuPack::Copy GpuPack::describe(const Gemm& p, bool is_a, const Side& side, int64_t offset) {
  Copy c;
  c.is_a = is_a, c.type = is_a ? p.a : p.b, c.align = side.align;
  c.rows = is_a ? p.a_rows() : p.b_rows(), c.columns = is_a ? p.a_columns() : p.b_columns();
  if (!side.packed) return c;
  c.transposed = side.k_major != (is_a ? !p.a_transposed() : p.b_transposed());
  const int64_t size = size_of(c.type);
  c.place.offset = offset;
  c.place.rows = c.transposed ? c.columns : c.rows, c.place.columns = c.transposed ? c.rows : c.columns;
  c.place.ld = round_up(c.place.columns * size, kLine) / size;
  const auto by = [&](Size along) { return p.ranged(along) ? std::optional(along) : std::nullopt; };
  c.place.rows_by = by(is_a ? Size::m : Size::n), c.place.columns_by = by(Size::k);
  if (!side.k_major) std::swap(c.place.rows_by, c.place.columns_by);
  c.blocks = c.transposed ? ceil_div(c.rows, c.tile()) * ceil_div(c.columns, c.tile()) * p.batch
                          : ceil_div(p.batch * c.rows * c.place.ld / c.unit(), kPackThreads);
  return c;
}

GpuPack::GpuPack(const Gemm& p, const Side& a, const Side& b, int64_t start) {
  int64_t at = round_up(start, kAlignment);
  const auto add = [&](bool is_a, const Side& side) {
    const Copy c = describe(p, is_a, side, at);
    if (!side.packed) return c;
    at += round_up(p.batch * c.place.rows * c.place.ld * size_of(c.type), kAlignment);
    bytes_ += double(p.batch) * double(size_of(c.type)) *
              (double(c.rows) * double(c.columns) + double(c.place.rows) * double(c.place.ld));
    end_ = at;
    return c;
  };
  if (p.ranged()) // what a call's rows decide comes last
    b_ = add(false, b), a_ = add(true, a);
  else
    a_ = add(true, a), b_ = add(false, b);
}

std::pair<int64_t, SizeRule> GpuPack::workspace_rule(const Gemm& p) const {
  if (!a_.place.ld || a_.place.rows_by != Size::m) return {};
  return {a_.place.offset, rule_of(p, a_.place.ld * size_of(a_.type), {{Size::m, 1}, {Size::batch, 1}})};
}

bool GpuPack::varies(const Gemm& p) const {
  const auto varies = [&](const Copy& c) {
    return c.blocks && (c.place.rows_by || c.place.columns_by || p.ranged(Size::batch));
  };
  return varies(a_) || varies(b_);
}

/// Of A alone, and a fixed K: that of two operands is a sum, which no rule can say, and no K may leave none.
/// Blocks without a piece do nothing.
SizeRule GpuPack::grid_rule(const Gemm& p) const {
  if (!a_.blocks || b_.blocks || p.ranged(Size::k)) return {};
  if (a_.transposed)
    return rule_of(p, ceil_div(a_.rows, a_.tile()), {{Size::m, a_.tile()}, {Size::batch, 1}});
  if (a_.place.rows_by != Size::m) return {};
  return covering_rule(p, a_.place.ld / a_.unit(), kPackThreads);
}

/// Where a thread loads less than a word at a time it stores a word: its neighbours read the same lines in
/// the same instruction.
int64_t GpuPack::Copy::piece() const { return (align < 4 ? 4 : 16) / size_of(type); }

/// Pieces of so many bytes in a row of the copy. Where a call says how long rows are, whole lines of it.
SizeValue GpuPack::in_row(GpuIr& ir, const Copy& c, const Operand& from, int64_t bytes) {
  const int64_t size = size_of(c.type);
  if (from.columns.is_constant()) return c.place.ld * size / bytes;
  return ir.product(ir.tiles(from.columns, kLine / size), kLine / bytes);
}

SizeValue GpuPack::blocks_of(GpuIr& ir, const Copy& c, const Operand& from) {
  if (!c.blocks) return 0;
  if (!c.transposed)
    return ir.tiles(ir.product(ir.product(from.batch, from.rows), in_row(ir, c, from, 16)), kPackThreads);
  return ir.product(ir.product(ir.tiles(from.rows, c.tile()), from.batch), ir.tiles(from.columns, c.tile()));
}

GpuPack::Place GpuPack::locate(GpuIr& ir, const Copy& c, const Operand& from, Value block, int64_t step) {
  const int64_t steps = c.unit() / c.piece();
  const SizeValue in_row = GpuPack::in_row(ir, c, from, c.piece() * size_of(c.type));
  Place place;
  place.index = ir.add(ir.mul(block, kPackThreads * steps), ir.add(ir.thread(), step * kPackThreads));
  const SizeValue pieces = ir.product(ir.product(from.batch, from.rows), in_row);
  place.inside = ir.less(place.index, pieces);
  Value index = ir.min(place.index, ir.c(ir.sub(pieces, 1))), line = ir.divide(index, in_row), row = line,
        entry;
  place.column = ir.mul(ir.sub(index, ir.mul(line, in_row)), c.piece());
  place.line = line;
  if (from.stride) entry = ir.divide(line, from.rows), row = ir.sub(line, ir.mul(entry, from.rows));
  Value first = ir.mul(ir.to_i64(row), from.ld);
  if (entry) first = ir.add(first, ir.mul(ir.to_i64(entry), from.stride));
  place.row = ir.offset(from.base, ir.mul(first, size_of(c.type)));
  return place;
}

/// Behind the row's end the last elements are repeated: no map reaches there.
void GpuPack::copy(GpuIr& ir, const Copy& c, const Operand& from, Value to, Value block) {
  const int64_t size = size_of(c.type), width = std::max(std::min<int64_t>(c.align, 16), size) / size;
  mlir::Type type = ir.lanes(width, ir.memory_type(c.type));
  std::vector<std::pair<Place, Value>> pieces;
  for (int64_t step = 0; step < c.unit() / c.piece(); ++step) {
    const Place place = locate(ir, c, from, block, step);
    Values elements;
    for (int64_t i = 0; i < c.piece(); i += width) {
      Value at = ir.min(ir.add(place.column, i), ir.c(ir.sub(from.columns, width)));
      const Values some = ir.unpack(ir.load_global(type, ir.offset(place.row, ir.mul(ir.to_i64(at), size)),
                                                   width * size, CachePolicy::read_only));
      elements.append(some.begin(), some.end());
    }
    pieces.emplace_back(place, ir.pack(elements));
  }
  for (const auto& [place, elements] : pieces)
    ir.branch(place.inside, [&] {
      Value at = ir.to_i64(place.index);
      if (from.columns.is_constant()) // rows follow each other
        at = ir.mul(at, c.piece() * size);
      else
        at = ir.mul(ir.add(ir.mul(ir.to_i64(place.line), c.place.ld), ir.to_i64(place.column)), size);
      ir.store(elements, ir.offset(to, at), c.piece() * size);
    });
}

/// The lines that copy() will read, into L2 alone: the predecessor may still write them.
void GpuPack::prefetch(GpuIr& ir, const Copy& c, const Operand& from, Value block) {
  const int64_t of_line = kLine / (c.piece() * size_of(c.type));
  ir.branch(ir.equal(ir.remainder(ir.thread(), of_line), ir.c(0)), [&] {
    for (int64_t step = 0; step < c.unit() / c.piece(); ++step) {
      const Place place = locate(ir, c, from, block, step);
      Value at = ir.min(place.column, ir.c(ir.sub(from.columns, 1)));
      ir.prefetch(ir.offset(place.row, ir.mul(ir.to_i64(at), size_of(c.type))));
    }
  });
}

/// A block turns a square tile through shared memory, whose rows are one bank further apart than they are
/// long.
void GpuPack::transpose(GpuIr& ir, const Copy& c, const Operand& operand, Value to, Value block) {
  const int64_t size = size_of(c.type), tile = c.tile(), pitch = c.pitch();
  const SizeValue tiles_c = ir.tiles(operand.columns, tile),
                  tiles = ir.product(ir.tiles(operand.rows, tile), tiles_c);
  Value entry, at = block;
  if (operand.stride) entry = ir.divide(block, tiles), at = ir.remainder(block, tiles);
  Value row0 = ir.mul(ir.divide(at, tiles_c), tile), column0 = ir.mul(ir.remainder(at, tiles_c), tile);
  Value shared = ir.shared_memory(), thread = ir.thread();
  Value from = operand.base;
  if (entry) from = ir.offset(from, ir.mul(ir.mul(ir.to_i64(entry), operand.stride), size));
  mlir::Type type = ir.memory_type(c.type);
  Value c_in = ir.remainder(thread, tile), r_in = ir.divide(thread, tile);
  Value column = ir.min(ir.add(column0, c_in), ir.c(ir.sub(operand.columns, 1)));
  for (int64_t r = 0; r < tile; r += kPackThreads / tile) {
    Value row = ir.add(r_in, r);
    Value source =
        ir.add(ir.mul(ir.to_i64(ir.min(ir.add(row0, row), ir.c(ir.sub(operand.rows, 1)))), operand.ld),
               ir.to_i64(column));
    Value x = ir.load_global(type, ir.offset(from, ir.mul(source, size)), size, CachePolicy::read_only);
    ir.store(x, ir.offset(shared, ir.add(ir.mul(row, pitch), ir.mul(c_in, size))), size);
  }
  ir.barrier();
  // Neighbours store neighbouring rows of the copy: their reads of the tile fall into different banks.
  Value k_in = ir.mul(ir.divide(thread, tile), c.unit());
  Value out_row = ir.add(column0, c_in);
  ir.branch(ir.less(out_row, operand.columns), [&] {
    Values elements;
    for (int64_t i = 0; i < c.unit(); ++i)
      elements.push_back(
          ir.load(type, ir.offset(shared, ir.add(ir.mul(ir.add(k_in, i), pitch), ir.mul(c_in, size))), size));
    Value line = entry ? ir.add(ir.mul(entry, operand.columns), out_row) : out_row;
    Value target = ir.add(ir.mul(ir.to_i64(line), c.place.ld), ir.to_i64(ir.add(row0, k_in)));
    ir.store(ir.pack(elements), ir.offset(to, ir.mul(target, size)), 16);
  });
}

GpuPack::Operand GpuPack::operand(GpuIr& ir, const Gemm& p, const Copy& c, const GpuIr::Arguments& values) {
  const GpuSizes sizes(ir, p, values);
  const bool is_a = c.is_a, rows_along_k = is_a ? !p.a_transposed() : p.b_transposed();
  const SizeValue other = is_a ? sizes.m : ir.product(sizes.n, p.gate ? 2 : 1);
  const auto stride = values.find("stride_" + c.name());
  return {values.at(c.name()),
          values.at("ld" + c.name()),
          stride == values.end() ? Value() : stride->second,
          rows_along_k ? other : sizes.k,
          rows_along_k ? sizes.k : other,
          sizes.batch};
}

void GpuPack::of_copy(NvIr& ir, Value block, const SizeValue& blocks_of_a,
                      const std::function<void(const Copy&, Value)>& work) const {
  if (!a_.blocks || !b_.blocks) return work(a_.blocks ? a_ : b_, block);
  ir.branch(
      ir.less(block, blocks_of_a), [&] { work(a_, block); },
      [&] { work(b_, ir.sub(block, ir.c(blocks_of_a))); });
}

void GpuPack::make(NvIr& ir, const Gemm& p, const GpuIr::Arguments& values, bool walks, bool early) const {
  const auto operand = [&](const Copy& c) { return GpuPack::operand(ir, p, c, values); };
  const SizeValue of_a = walks ? blocks_of(ir, a_, operand(a_)) : SizeValue(a_.blocks);
  const SizeValue all = walks ? ir.sum(of_a, blocks_of(ir, b_, operand(b_))) : SizeValue(0);
  const auto ask = [&] {
    of_copy(ir, ir.block_x(), of_a, [&](const Copy& c, Value block) {
      if (!c.transposed) prefetch(ir, c, operand(c), block);
    });
  };
  const auto move = [&](const Copy& c, Value block) {
    const Operand from = operand(c);
    Value to = ir.offset(values.at("workspace"), c.place.offset);
    if (!c.transposed) return copy(ir, c, from, to, block);
    const SizeValue tiles =
        ir.product(ir.product(ir.tiles(from.rows, c.tile()), from.batch), ir.tiles(from.columns, c.tile()));
    if (tiles.is_constant()) return transpose(ir, c, from, to, block);
    ir.branch(ir.less(block, tiles), [&] { transpose(ir, c, from, to, block); }); // others have none
  };
  ir.launch_dependents();
  if (early && walks)
    ir.branch(ir.less(ir.block_x(), all), ask);
  else if (early)
    ask();
  ir.wait_for_predecessor();
  if (!walks) return of_copy(ir, ir.block_x(), of_a, move);
  ir.rolled_loop(ir.block_x(), ir.c(all), ir.grid_x(), {}, [&](Value block, mlir::ValueRange) {
    of_copy(ir, block, of_a, move);
    ir.barrier(); // the next tile goes through the same shared memory
    return Values();
  });
}

Launch GpuPack::emit(NvIr& ir, const Gemm& p, const std::vector<std::string>& names, bool dependent,
                     bool early) const {
  Launch launch;
  launch.entry = "deepgen_pack";
  launch.grid[0] = a_.blocks + b_.blocks, launch.block[0] = kPackThreads;
  launch.grid_rules[0] = grid_rule(p);
  for (const Copy* c : {&a_, &b_})
    if (c->place.ld && c->transposed) launch.shared = std::max(launch.shared, c->tile() * c->pitch());
  launch.dependent = dependent;
  // Where no rule says how many blocks a call wants, as many as fit at a time share its work.
  launch.persistent = varies(p) && !launch.grid_rules[0].exists();
  GpuEntry entry;
  entry.name = launch.entry, entry.threads = kPackThreads;
  ir.kernel(entry, p, names,
            [&](const GpuIr::Arguments& values) { make(ir, p, values, launch.persistent, early); });
  return launch;
}

} // namespace deepgen
