#include "templates/nvidia/hopper_ws/hopper_ws_groups.h"

#include "templates/gpu/gpu_sizes.h"
#include "templates/ir/hopper_ir.h"

#include <bit>

namespace deepgen {

HopperGroups::HopperGroups(HopperIr& ir, const Gemm& p, const HopperTiling& t,
                           const GpuIr::Arguments& arguments, Value table)
    : ir(ir), p(p), t(t), groups_(ir, p, arguments, t.cluster_rows()),
      columns_(ir.tiles(GpuSizes(ir, p, arguments).n, t.cluster_columns())), table_(table) {}

int64_t HopperGroups::most_work(const Gemm& p, const HopperTiling& t) {
  return GpuGroups::most_tiles(p, t.cluster_rows()) * (t.swap ? t.clusters_m : t.clusters_n);
}

SizeRule HopperGroups::grid_rule(const Gemm& p, const HopperTiling& t) {
  SizeRule rule = GpuGroups::grid_rule(p, t.cluster_rows(), t.cluster_columns());
  rule.factor *= t.cluster();
  return rule;
}

Value HopperGroups::read(Value group, int64_t column) const {
  Value address = ir.add(ir.add(table_, 4 * column * (p.groups + 1)), ir.shift_left(group, 2));
  return ir.load(ir.i32, ir.pointer_to(address), 4);
}

void HopperGroups::fill() {
  auto write = [&](Value group, Value tiles, Value row) {
    Value address = ir.add(table_, ir.shift_left(group, 2));
    ir.store(tiles, ir.pointer_to(address), 4);
    ir.store(row, ir.pointer_to(ir.add(address, 4 * (p.groups + 1))), 4);
  };
  ir.branch(ir.less(ir.warp(), 1), [&] {
    ir.rolled_loop(
        ir.c(0), ir.c(groups_.chunks()), 1, {ir.c(0)}, [&](Value chunk, mlir::ValueRange before) -> Values {
          const GpuGroups::Lane l = groups_.chunk(chunk, before[0]);
          Value tiles = ir.add(l.tiles_before, l.tiles);
          ir.branch(ir.less(l.number, p.groups), [&] { write(ir.add(l.number, 1), tiles, l.end_row); });
          ir.branch(ir.less(l.number, 1), [&] { write(ir.c(0), ir.c(0), l.first_row); });
          return {ir.shuffle_index(tiles, ir.c(31))};
        });
  });
  ir.barrier();
}

Value HopperGroups::work() const { return ir.mul(read(ir.c(p.groups), 0), columns_); }

/// The last group before which there are no more rows of tiles than that: a group without tiles is not the
/// last one.
HopperGroups::Place HopperGroups::locate(Value index) const {
  Value row = ir.divide(index, columns_), group = ir.c(0);
  for (int64_t step = int64_t(std::bit_ceil(uint64_t(p.groups))) / 2; step > 0; step /= 2) {
    Value further = ir.min(ir.add(group, step), ir.c(p.groups));
    group = ir.select(ir.less(row, read(further, 0)), group, further);
  }
  Value before = read(group, 0), next = ir.add(group, 1);
  return {group, read(group, 1), read(next, 1), ir.sub(read(next, 0), before),
          ir.sub(index, ir.mul(before, columns_))};
}

} // namespace deepgen
