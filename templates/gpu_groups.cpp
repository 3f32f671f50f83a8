#include "templates/gpu_groups.h"

#include "templates/sizes.h"

namespace deepgen {

namespace {
constexpr int64_t kWarp = 32;
}

GpuGroups::GpuGroups(GpuIr& ir, const Problem& p, const GpuIr::Arguments& arguments, int64_t tile_rows)
    : ir(ir), p(p), arguments_(arguments), tile_rows_(tile_rows) {}

int64_t GpuGroups::chunks() const { return ceil_div(p.groups, kWarp); }

/// Every group with rows has one tile that may be smaller, and of rows beyond those only whole ones are more tiles.
int64_t GpuGroups::most_tiles(const Problem& p, int64_t tile_rows) {
  const int64_t begun = std::min(p.groups, p.m);
  return begun + (p.m - begun) / tile_rows;
}

GpuGroups::Lane GpuGroups::chunk(Value chunk, Value tiles_before) {
  Value lane = ir.lane(), table = arguments_.at("offsets");
  Lane l;
  l.number = ir.add(ir.mul(chunk, kWarp), lane);
  auto offset = [&](Value index) { // beyond the last group: its end
    return ir.load(ir.i32, ir.offset(table, ir.shift_left(ir.min(index, ir.c(p.groups)), 2)), 4);
  };
  l.first_row = offset(l.number), l.end_row = offset(ir.add(l.number, 1));
  l.tiles = ir.divide(ir.add(ir.sub(l.end_row, l.first_row), tile_rows_ - 1), tile_rows_);
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
  const Values found = ir.rolled_loop(
      zero, ir.c(chunks()), 1, {zero, none, zero, zero, zero, zero}, [&](Value index, mlir::ValueRange before) -> Values {
        const Lane l = chunk(index, before[0]);
        Value inside = ir.sub(row_of_tiles, l.tiles_before);
        Value mine = ir.both(ir.at_least(inside, 0), ir.less(inside, l.tiles));
        auto kept = [&](Value x, Value old) { return ir.select(mine, x, old); };
        return {ir.shuffle_index(ir.add(l.tiles_before, l.tiles), ir.c(kWarp - 1)), kept(l.number, before[1]),
                kept(l.first_row, before[2]), kept(l.end_row, before[3]), kept(l.tiles, before[4]),
                kept(l.tiles_before, before[5])};
      });
  Value owner = ir.select(ir.at_least(found[1], 0), ir.lane(), none);
  for (int64_t step = 1; step < kWarp; step *= 2) owner = ir.max(owner, ir.shuffle_xor(owner, step));
  Value from = ir.bit_and(owner, kWarp - 1);
  auto of_owner = [&](size_t i) { return ir.shuffle_index(found[i], from); };
  return {ir.at_least(owner, 0), of_owner(1), of_owner(2), of_owner(3), of_owner(4), of_owner(5)};
}

GpuIr::Arguments GpuGroups::of_group(Value number) const {
  GpuIr::Arguments out = arguments_;
  auto advance = [&](EpilogueOp op, const char* name, Type type) {
    if (p.has(op)) out[name] = ir.offset(out.at(name), ir.mul(ir.to_i64(number), p.n * size_of(type)));
  };
  advance(EpilogueOp::bias, "bias", p.epilogue_type());
  advance(EpilogueOp::scale_col, "scale_col", p.scale_type());
  return out;
}

} // namespace deepgen
