// The kernel of an mfma or wmma config: where its tile is, what its lanes have, and its results.
#include "templates/amd/amd_matrix_block.h"
#include "templates/core/sizes.h"
#include "templates/gpu/gpu_split_k.h"

namespace deepgen {

/// Blocks are dealt out to the dies in turn: each gets consecutive tiles. Tiles go down columns of `group`
/// before they go right, so that neighbours share operands in L2.
void MatrixBlock::find_tile() {
  Value index = ir.block_x();
  split_ = ir.block_y();
  const SizeValue tiles_m = ir.tiles(sizes_.m, t.bm), tiles_n = ir.tiles(sizes_.n, t.bn),
                  tiles = ir.product(tiles_m, tiles_n);
  if (t.xcds > 1) {
    const SizeValue grid = ir.product(tiles, sizes_.batch);
    const SizeValue each = grid.is_constant() ? grid.constant() / t.xcds
                                              : SizeValue(ir.divide(grid.value(), t.xcds)),
                    rest = grid.is_constant() ? grid.constant() % t.xcds
                                              : SizeValue(ir.remainder(grid.value(), t.xcds));
    Value die = ir.remainder(index, t.xcds), place = ir.divide(index, t.xcds);
    Value before = ir.add(ir.mul(die, each), ir.min(die, ir.c(rest)));
    index = ir.add(before, place);
  }
  if (p.batch > 1) {
    entry_ = ir.divide(index, tiles);
    index = ir.sub(index, ir.mul(entry_, tiles));
  }
  const int64_t group = tiles_m.is_constant() ? std::min(t.group, t.tiles_m) : t.group;
  const SizeValue of_band = ir.product(tiles_n, group);
  Value band = ir.divide(index, of_band);
  Value inside = ir.sub(index, ir.mul(band, of_band)), first = ir.mul(band, group);
  Value rows =
      group > 1 && tiles_m.may_leave(group) ? ir.min(ir.sub(ir.c(tiles_m), first), ir.c(group)) : ir.c(group);
  Value n = ir.divide(inside, rows), m = ir.sub(inside, ir.mul(n, rows));
  block_m_ = ir.mul(ir.add(first, m), t.bm), block_n_ = ir.mul(n, t.bn);
}

void MatrixBlock::find_lane() {
  Value wave = ir.wave(), lane = ir.wave_lane();
  lane_row_ = ir.remainder(lane, t.size), lane_group_ = ir.divide(lane, t.size);
  wave_m_ = ir.mul(ir.divide(wave, t.waves_n), t.wm);
  wave_n_ = ir.mul(ir.remainder(wave, t.waves_n), t.wn);
  Value shared = ir.shared_memory();
  Value a = ir.offset(ir.offset(shared, ir.mul(ir.add(wave_m_, lane_row_), t.bk_bytes)), t.a.offset);
  Value b = ir.offset(ir.offset(shared, ir.mul(ir.add(wave_n_, lane_row_), t.bk_bytes)), t.b.offset);
  // Rows that are a multiple of `size` apart have the same swizzle.
  Value piece = t.swizzle(ir, lane_row_);
  if (t.shape.groups > 1) piece = ir.bit_xor(piece, ir.mul(lane_group_, t.shape.pieces()));
  for (int64_t step = 0; step < t.steps; ++step)
    for (int64_t i = 0; i < t.shape.pieces(); ++i) {
      Value along_k = ir.mul(ir.bit_xor(piece, step * t.shape.step_bytes() / 16 + i), 16);
      lds_a_.push_back(ir.offset(a, along_k)), lds_b_.push_back(ir.offset(b, along_k));
    }
}

Value MatrixBlock::operand(const char* name, const MatrixSide& side) {
  Value base = args_.at(name);
  if (!entry_) return base;
  Value stride = args_.at(std::string("stride_") + name);
  return ir.offset(base, ir.mul(ir.mul(ir.to_i64(entry_), stride), side.bytes));
}

Value MatrixBlock::pitch(const char* name, const MatrixSide& side) {
  return ir.mul(args_.at(std::string("ld") + name), side.bytes);
}

/// A lane's values of one row of D: `width` consecutive columns for each instruction, or pair of them.
std::vector<Fragment> MatrixBlock::fragments(const Values& sums, int64_t i, Value row,
                                             const Values& columns) {
  std::vector<Fragment> out;
  const int64_t together = t.paired ? 2 : 1;
  for (int64_t j = 0; j < column_tiles(); j += together) {
    Fragment f{row, columns[size_t(j / together)], {}};
    for (int64_t k = 0; k < together; ++k)
      llvm::append_range(f.values, ir.unpack(sums[size_t(i * column_tiles() + j + k)]));
    out.push_back(f);
  }
  return out;
}

void MatrixBlock::store(const Values& sums, int64_t align_d) {
  const Bounds bounds{sizes_.m.may_leave(t.bm), sizes_.n.may_leave(t.bn)};
  const int64_t together = t.paired ? 2 : 1, width = t.shape.values * together;
  Value first_column = ir.add(ir.add(block_n_, wave_n_), ir.mul(lane_group_, width));
  Value first_row = ir.add(ir.add(block_m_, wave_m_), lane_row_);
  Values columns;
  for (int64_t j = 0; j < column_tiles(); j += together) columns.push_back(ir.add(first_column, j * t.size));
  std::unique_ptr<GpuEpilogue> epilogue;
  if (t.splits == 1) epilogue = std::make_unique<GpuEpilogue>(ir, p, args_, entry_, align_d);
  for (int64_t i = 0; i < row_tiles(); ++i) {
    const std::vector<Fragment> all = fragments(sums, i, ir.add(first_row, i * t.size), columns);
    const size_t group = size_t(std::max<int64_t>(1, 16 / width));
    for (size_t j = 0; j < all.size(); j += group) {
      const auto some = llvm::ArrayRef<Fragment>(all).slice(j, std::min(group, all.size() - j));
      if (epilogue)
        epilogue->store(some, bounds);
      else
        GpuSplitK(p, t.splits).store(ir, args_, split_, entry_, some, bounds);
    }
  }
}

/// Splits share the tiles along K evenly. Of a call's K the last ones may have none.
void MatrixBlock::find_share() {
  const SizeValue tiles_k = ir.tiles(sizes_.k, t.bk), whole = ir.product(ir.sub(tiles_k, 1), t.bk);
  first_tile_ = ir.c(0), tiles_ = ir.c(tiles_k);
  depth_ = any_k_ ? SizeValue(ir.sub(sizes_.k.value(), whole.value())) : p.k - whole.constant();
  if (t.splits == 1) return;
  const SizeValue each = ir.tiles(tiles_k, t.splits);
  first_tile_ = ir.mul(split_, each);
  tiles_ = ir.min(ir.c(each), ir.sub(ir.c(tiles_k), first_tile_));
}

void MatrixBlock::emit(int64_t align_d) {
  find_tile();
  find_lane();
  find_share();
  a_ = std::make_unique<MatrixFill>(ir, t, t.a, operand("a", t.a), pitch("a", t.a), block_m_, sizes_.m,
                                    sizes_.k, false);
  b_ = std::make_unique<MatrixFill>(ir, t, t.b, operand("b", t.b), pitch("b", t.b), block_n_, sizes_.n,
                                    sizes_.k, true);
  const auto sum_up = [&] { return this->sum_up(); };
  const auto count = size_t(row_tiles() * column_tiles());
  store(any_k_ ? ir.sums_of(tiles_, count, t.shape.sum_type(ir), sum_up) : sum_up(), align_d);
}

Values MatrixBlock::sum_up() {
  State s = first_state();
  if (t.pingpong) ir.branch(in_second_group(), [&] { barrier(kAllCopies); }); // it comes later
  if (any_k_ || t.tiles_k > 1) {
    Value behind = ir.sub(tiles_, ir.c(1));
    Values last = ir.rolled_loop(ir.c(0), behind, 1, s.pack(), [&](Value index, mlir::ValueRange carried) {
      Value left = ir.sub(behind, index);
      const State now = s.unpacked(Values(carried));
      return (t.pingpong ? turn(now, left) : tile(now, left)).pack();
    });
    s = s.unpacked(last);
  }
  if (t.pingpong) {
    s = turn(s, Value());
    ir.branch(ir.less(ir.wave(), AmdArch::simds), [&] { barrier(kAllCopies); });
  } else {
    last_tile(s);
  }
  if (t.direct) ir.wait_copies(0); // LDS is another block's when this one has ended
  return s.sums;
}

Kernel AmdMatrix::emit(mlir::ModuleOp module, const Gemm& p, const std::string& arch,
                       const Config& config) const {
  const MatrixTiling t(p, arch, config);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = arch;
  kernel.args = gpu_arguments(p, t.splits > 1);
  kernel.align_a = t.align(t.a), kernel.align_b = t.align(t.b);
  kernel.most_pitch = t.buffer ? std::max<int64_t>(1, t.most_pitch()) : 0; // 0 would be any
  kernel.align_d = t.width_d * size_of(p.d);
  AmdIr ir(module, kernel.target);
  GpuEntry entry;
  entry.name = kernel_symbol, entry.threads = t.threads, entry.min_blocks = t.blocks,
  entry.shared = t.shared_bytes();
  ir.kernel(entry, p, kernel.args,
            [&](const GpuIr::Arguments& args) { MatrixBlock(ir, p, t, args).emit(kernel.align_d); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {t.tiles_m * t.tiles_n * p.batch, t.splits, 1};
  launch.grid_rules[0] = rule_of(p, 1, {{Size::m, t.bm}, {Size::n, t.bn}, {Size::batch, 1}});
  launch.block = {t.threads, 1, 1};
  kernel.launches.push_back(launch);
  GpuSplitK(p, t.splits).add_reduce(ir, kernel);
  return kernel;
}

} // namespace deepgen
