#include "templates/gpu/gpu_groups.h"

#include "base/problem/signature.h"
#include "templates/core/sizes.h"
#include "templates/gpu/gpu_sizes.h"
#include "templates/ir/gpu_ir.h"

namespace deepgen {

namespace {
constexpr int64_t kWarp = 32;
}

GpuGroups::GpuGroups(GpuIr& ir, const Gemm& p, const GpuIr::Arguments& arguments, int64_t tile_rows)
    : ir(ir), p(p), arguments_(arguments), tile_rows_(tile_rows) {}

int64_t GpuGroups::chunks() const { return ceil_div(p.groups, kWarp); }

/// Every group with rows has one tile that may be smaller, and of rows beyond those only whole ones are more
/// tiles.
int64_t GpuGroups::most_tiles(const Gemm& p, int64_t tile_rows) {
  const int64_t begun = std::min(p.groups, p.m);
  return begun + (p.m - begun) / tile_rows;
}

SizeRule GpuGroups::grid_rule(const Gemm& p, int64_t tile_rows, int64_t tile_columns) {
  if (p.ranged(Size::m)) return rule_of(p, 1, {{Size::m, 1}, {Size::n, tile_columns}});
  return rule_of(p, most_tiles(p, tile_rows), {{Size::n, tile_columns}});
}

Value GpuGroups::offset(Value index) const {
  return ir.load_global(
      ir.i32, ir.offset(arguments_.at("offsets"), ir.shift_left(ir.min(index, ir.c(p.groups)), 2)), 4);
}

Value GpuGroups::tiles_of(Value first_row, Value end_row) const {
  return ir.divide(ir.add(ir.sub(end_row, first_row), tile_rows_ - 1), tile_rows_);
}

GpuGroups::Lane GpuGroups::chunk(Value chunk, Value tiles_before) {
  Value lane = ir.lane();
  Lane l;
  l.number = ir.add(ir.mul(chunk, kWarp), lane);
  l.first_row = offset(l.number), l.end_row = offset(ir.add(l.number, 1));
  l.tiles = tiles_of(l.first_row, l.end_row);
  Value sum = l.tiles; // of this lane's and all lower ones
  for (int64_t step = 1; step < kWarp; step *= 2) {
    Value from = ir.shuffle_index(sum, ir.bit_and(ir.add(lane, kWarp - step), kWarp - 1));
    sum = ir.add(sum, ir.select(ir.at_least(lane, step), from, ir.c(0)));
  }
  l.tiles_before = ir.add(tiles_before, ir.sub(sum, l.tiles));
  return l;
}

GpuGroups::Group GpuGroups::group_of(Value row_of_tiles) {
  Value zero = ir.c(0), none = ir.c(-1);
  // Carried: tiles of the chunks before; what this lane knows if the group is one of its.
  const Values found =
      ir.rolled_loop(zero, ir.c(chunks()), 1, {zero, none, zero, zero, zero, zero},
                     [&](Value index, mlir::ValueRange before) -> Values {
                       const Lane l = chunk(index, before[0]);
                       Value inside = ir.sub(row_of_tiles, l.tiles_before);
                       Value mine = ir.both(ir.at_least(inside, 0), ir.less(inside, l.tiles));
                       auto kept = [&](Value x, Value old) { return ir.select(mine, x, old); };
                       return {ir.shuffle_index(ir.add(l.tiles_before, l.tiles), ir.c(kWarp - 1)),
                               kept(l.number, before[1]),
                               kept(l.first_row, before[2]),
                               kept(l.end_row, before[3]),
                               kept(l.tiles, before[4]),
                               kept(l.tiles_before, before[5])};
                     });
  Value owner = ir.select(ir.at_least(found[1], 0), ir.lane(), none);
  for (int64_t step = 1; step < kWarp; step *= 2) owner = ir.max(owner, ir.shuffle_xor(owner, step));
  Value from = ir.bit_and(owner, kWarp - 1);
  auto of_owner = [&](size_t i) { return ir.shuffle_index(found[i], from); };
  return {ir.at_least(owner, 0), of_owner(1), of_owner(2), of_owner(3), of_owner(4), of_owner(5)};
}

GpuGroups::Group GpuGroups::group_one_by_one(Value row_of_tiles) {
  Value zero = ir.c(0);
  // Carried: where the group begins; tiles of the groups before; what is known of the one that is wanted.
  const Values found =
      ir.rolled_loop(zero, ir.c(p.groups), 1, {offset(zero), zero, ir.c(-1), zero, zero, zero, zero},
                     [&](Value group, mlir::ValueRange before) -> Values {
                       Value first = before[0], end = offset(ir.add(group, 1)), tiles = tiles_of(first, end);
                       Value inside = ir.sub(row_of_tiles, before[1]);
                       Value wanted = ir.both(ir.at_least(inside, 0), ir.less(inside, tiles));
                       auto kept = [&](Value x, Value old) { return ir.select(wanted, x, old); };
                       return {end,
                               ir.add(before[1], tiles),
                               kept(group, before[2]),
                               kept(first, before[3]),
                               kept(end, before[4]),
                               kept(tiles, before[5]),
                               kept(before[1], before[6])};
                     });
  return {ir.at_least(found[2], 0), found[2], found[3], found[4], found[5], found[6]};
}

GpuIr::Arguments GpuGroups::of_group(Value number) const {
  GpuIr::Arguments out = arguments_;
  const GpuSizes sizes(ir, p, arguments_);
  for (const Operand& x : signature(p)) {
    if (x.shape != Operand::Shape::per_column) continue; // the others belong to rows, or to all groups
    const SizeValue bytes = ir.product(ir.wide(sizes.n), size_of(x.type));
    out[x.name] = ir.offset(out.at(x.name), ir.mul(ir.to_i64(number), bytes));
  }
  return out;
}

} // namespace deepgen
