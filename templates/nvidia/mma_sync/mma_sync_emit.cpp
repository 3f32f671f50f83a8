// The kernel of one config of mma_sync: what is around the main loop.
#include "templates/core/sizes.h"
#include "templates/gpu/gpu_gate.h"
#include "templates/gpu/gpu_groups.h"
#include "templates/gpu/gpu_split_k.h"
#include "templates/nvidia/mma_sync/mma_sync_loop.h"
#include "templates/nvidia/mma_sync/mma_sync_store.h"

namespace deepgen {
namespace {

class MmaKernel {
public:
  MmaKernel(NvIr& ir, const Gemm& p, const MmaTiling& t, const GpuIr::Arguments& arguments)
      : ir(ir), p(p), t(t), arguments(arguments), sizes(ir, p, arguments), tiles_m(ir.tiles(sizes.m, t.bm)),
        tiles_n(ir.tiles(sizes.n, t.columns)) {}
  void emit();

private:
  void locate_block();
  Value count_tiles() { return ir.tiles_in_turn(ir.tiles(sizes.k, t.bk), first_tile, t.splits); }
  void locate_in_group(const GpuGroups&, const GpuGroups::Group&);
  void emit_tile();
  void locate_warp();
  TileFill fill(const std::string& name, const SharedTile&, int64_t align, Value first,
                const SizeValue& extent, int64_t weight = 0);
  std::vector<TileFill> fills();
  std::vector<FragmentReader> readers();
  void store();

  NvIr& ir;
  const Gemm& p;
  const MmaTiling& t;
  GpuIr::Arguments arguments;
  const GpuSizes sizes;
  const SizeValue tiles_m, tiles_n;
  Value memory, m0, n0, entry, split, first_tile, tile_count; ///< entry, split: null when there is one
  Value matrix, row_end;                                      ///< of B; of the group. Null without groups
  Value warp_m, warp_n, warp_k;
  Values sums;

  int64_t m_tiles() const { return t.wm / 16; }
  int64_t n_tiles() const { return t.wn / 8; }
};

/// Blocks that run at the same time should share rows of A and columns of B: bands of `group` rows of tiles
/// are visited column by column. Splits and batch entries follow each other. Split s has the tiles s, s +
/// splits, ... of K: blocks that run at the same time then read neighbouring parts of the same rows.
void MmaKernel::locate_block() {
  Value index = ir.block_x(), tile = index;
  if (t.splits * p.batch > 1) {
    const SizeValue tiles = ir.product(tiles_m, tiles_n);
    tile = ir.remainder(index, tiles);
    Value rest = ir.divide(index, tiles);
    if (t.split()) split = p.batch > 1 ? ir.remainder(rest, t.splits) : rest;
    if (p.batch > 1) entry = ir.divide(rest, t.splits);
  }
  const int64_t group = tiles_m.is_constant() ? std::min(t.group, t.tiles_m) : t.group;
  const SizeValue of_band = ir.product(tiles_n, group);
  Value band = ir.divide(tile, of_band), inside = ir.remainder(tile, of_band);
  Value height = ir.c(group), first = ir.mul(band, group);
  if (group > 1 && tiles_m.may_leave(group)) height = ir.min(ir.sub(ir.c(tiles_m), first), height);
  m0 = ir.mul(ir.add(first, ir.remainder(inside, height)), t.bm);
  n0 = ir.mul(ir.divide(inside, height), t.columns);
  first_tile = split ? split : ir.c(0);
  tile_count = count_tiles();
}

/// Column by column within a group, so that blocks that run at the same time share the group's weights. A
/// tile of B is read once by all of the group's rows of tiles.
void MmaKernel::locate_in_group(const GpuGroups& groups, const GpuGroups::Group& group) {
  Value inside = ir.sub(ir.block_x(), ir.mul(group.tiles_before, tiles_n));
  m0 = ir.add(group.first_row, ir.mul(ir.remainder(inside, group.tiles), t.bm));
  n0 = ir.mul(ir.divide(inside, group.tiles), t.columns);
  matrix = group.number, row_end = group.end_row;
  first_tile = ir.c(0), tile_count = count_tiles();
  arguments = groups.of_group(group.number);
}

void MmaKernel::locate_warp() {
  Value warp = ir.warp();
  warp_m = ir.remainder(warp, t.warps_m);
  warp_n = ir.remainder(ir.divide(warp, t.warps_m), t.warps_n);
  warp_k = ir.divide(warp, t.warps_m * t.warps_n);
}

TileFill MmaKernel::fill(const std::string& name, const SharedTile& tile, int64_t align, Value first,
                         const SizeValue& extent, int64_t weight) {
  Value base = arguments.at(name);
  const SizeValue bytes = ir.product(ir.wide(extent), tile.element);
  if (weight && tile.k_contiguous)
    base = ir.offset(base, ir.mul(arguments.at("ld" + name), bytes));
  else if (weight)
    base = ir.offset(base, bytes);
  Value number = name == "b" && matrix ? matrix : entry;
  if (number && arguments.count("stride_" + name))
    base = ir.offset(base, ir.mul(ir.mul(ir.to_i64(number), arguments.at("stride_" + name)), tile.element));
  return TileFill(ir, tile, t.threads, align,
                  {base, ir.mul(arguments.at("ld" + name), tile.element), first, extent,
                   ir.mul(first_tile, t.bk), t.splits, name == "a" ? row_end : Value()});
}

std::vector<TileFill> MmaKernel::fills() {
  std::vector<TileFill> out = {fill("a", t.a, t.align_a, m0, sizes.m)};
  for (int64_t w = 0; w < t.weights; ++w) out.push_back(fill("b", t.b, t.align_b, n0, sizes.n, w));
  return out;
}

std::vector<FragmentReader> MmaKernel::readers() {
  Value k_first = ir.mul(warp_k, t.steps * t.shape.k);
  std::vector<FragmentReader> out;
  out.emplace_back(ir, t.a, t.shape, true, ir.mul(warp_m, t.wm), m_tiles(), k_first, t.steps);
  for (int64_t w = 0; w < t.weights; ++w)
    out.emplace_back(ir, t.b, t.shape, false, ir.mul(warp_n, t.warp_columns), n_tiles() / t.weights, k_first,
                     t.steps);
  return out;
}

void MmaKernel::emit() {
  memory = ir.shared_memory();
  if (p.groups) {
    if (t.dependent) ir.wait_for_predecessor();
    GpuGroups groups(ir, p, arguments, t.bm);
    const GpuGroups::Group group = groups.group_of(ir.divide(ir.block_x(), tiles_n));
    ir.branch(group.exists, [&] {
      locate_in_group(groups, group);
      emit_tile();
    });
    return;
  }
  locate_block();
  emit_tile();
}

void MmaKernel::emit_tile() {
  locate_warp();
  const bool integer = p.accumulate == Type::i32;
  Value zero = integer ? ir.c(0) : ir.number(t.shape.doubles ? ir.f64 : ir.f32, 0.0);
  MmaLoop loop(ir, p, t, memory, {split, first_tile, tile_count, sizes.k}, {fills(), readers()});
  sums = loop.run(Values(size_t(m_tiles() * n_tiles() * 4), zero));
  if ((t.dependent && !t.prefetch) || t.split()) ir.launch_dependents();
  store();
}

void MmaKernel::store() {
  MmaPlace place{memory, m0, n0, entry, split, warp_m, warp_n, warp_k, row_end};
  if (!p.gate) return MmaStore(ir, p, t, arguments, place, mlir::ValueRange(sums)).emit();
  Values of_weight[2];
  for (int64_t i = 0; i < m_tiles(); ++i)
    for (int64_t j = 0; j < n_tiles(); ++j) {
      auto first = sums.begin() + (i * n_tiles() + j) * 4;
      of_weight[j / (n_tiles() / 2)].append(first, first + 4);
    }
  if (t.split()) {
    for (; place.weight < 2; ++place.weight)
      MmaStore(ir, p, t, arguments, place, mlir::ValueRange(of_weight[place.weight])).emit();
    return;
  }
  const GpuGate gate(ir, p, arguments);
  MmaStore(ir, GpuGate::rest(p), t, gate.rest(arguments), place, {gate, of_weight[0], of_weight[1]}).emit();
}

} // namespace

Kernel MmaSync::emit(mlir::ModuleOp module, const Gemm& p, const std::string& arch,
                     const Config& config) const {
  const MmaTiling t(p, compute_capability(arch), config);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = "sm_" + std::to_string(compute_capability(arch));
  kernel.args = gpu_arguments(p, t.split());
  kernel.align_a = t.align_a, kernel.align_b = t.align_b, kernel.align_d = t.align_d;
  NvIr ir(module, kernel.target);
  ir.kernel({kernel_symbol, t.threads, t.resident}, p, kernel.args,
            [&](const GpuIr::Arguments& arguments) { MmaKernel(ir, p, t, arguments).emit(); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {p.groups ? GpuGroups::most_tiles(p, t.bm) * t.tiles_n : t.blocks() * p.batch, 1, 1};
  launch.grid_rules[0] =
      p.groups ? GpuGroups::grid_rule(p, t.bm, t.columns)
               : rule_of(p, t.splits, {{Size::m, t.bm}, {Size::n, t.columns}, {Size::batch, 1}});
  launch.block = {t.threads, 1, 1};
  launch.shared = t.shared;
  launch.dependent = t.dependent;
  kernel.launches.push_back(launch);
  GpuSplitK(p, t.splits).add_reduce(ir, kernel);
  return kernel;
}

} // namespace deepgen
