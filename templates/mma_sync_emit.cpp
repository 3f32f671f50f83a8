// The kernel of one config of mma_sync: the main loop and what is around it.
#include "templates/gpu_gate.h"
#include "templates/gpu_groups.h"
#include "templates/gpu_split_k.h"
#include "templates/mma_sync.h"
#include "templates/mma_sync_fill.h"
#include "templates/mma_sync_store.h"

#include <functional>

namespace deepgen {
namespace {

class MmaKernel {
public:
  MmaKernel(GpuIr& ir, const Problem& p, const MmaTiling& t, const GpuIr::Arguments& arguments)
      : ir(ir), p(p), t(t), arguments(arguments) {}
  void emit();

private:
  void locate_block();
  void locate_in_group(const GpuGroups&, const GpuGroups::Group&);
  void emit_tile();
  void locate_warp();
  TileFill fill(const std::string& name, const SharedTile&, int64_t align, Value first, int64_t extent,
                int64_t weight = 0);
  std::vector<TileFill> fills();
  std::vector<FragmentReader> readers();
  Value stage(Value offset) { return ir.offset(memory, offset); }
  /// Of an operand's tile in a stage: A, then each weight.
  int64_t tile_offset(size_t operand) const {
    return operand == 0 ? 0 : t.a.bytes() + int64_t(operand - 1) * t.b.bytes();
  }
  Value k_left(Value tile_index, bool always);
  void accumulate();
  void multiply_step(mlir::ValueRange fragments, const std::function<void(int64_t column)>& after_column = {});
  Values multiply_and_read(mlir::ValueRange fragments, const std::vector<FragmentReader>&, Value at, int64_t step);
  void store();

  GpuIr& ir;
  const Problem& p;
  const MmaTiling& t;
  GpuIr::Arguments arguments;
  Value memory, m0, n0, entry, split, first_tile, tile_count; ///< entry, split: null when there is one
  Value matrix, row_end; ///< of B; of the group. Null without groups
  Value warp_m, warp_n, warp_k;
  Values sums;

  int64_t m_tiles() const { return t.wm / 16; }
  int64_t n_tiles() const { return t.wn / 8; }
  /// Steps of a tile over which copies of a later one are spread; with two stages that is the next tile, which then has the
  /// other half of the steps to arrive.
  int64_t spread_over() const { return std::max<int64_t>(1, t.ring == 2 ? t.steps / 2 : t.steps - 1); }
};

/// Blocks that run at the same time should share rows of A and columns of B: bands of `group` rows of tiles
/// are visited column by column. Splits and batch entries follow each other. Split s has the tiles s, s +
/// splits, ... of K: blocks that run at the same time then read neighbouring parts of the same rows.
void MmaKernel::locate_block() {
  const int64_t tiles = t.tiles_m * t.tiles_n;
  Value index = ir.block_x(), tile = index;
  if (t.splits * p.batch > 1) {
    tile = ir.remainder(index, tiles);
    Value rest = ir.divide(index, tiles);
    if (t.split()) split = p.batch > 1 ? ir.remainder(rest, t.splits) : rest;
    if (p.batch > 1) entry = ir.divide(rest, t.splits);
  }
  const int64_t group = std::min(t.group, t.tiles_m);
  Value band = ir.divide(tile, group * t.tiles_n), inside = ir.remainder(tile, group * t.tiles_n);
  Value height = ir.c(group), first = ir.mul(band, group);
  if (t.tiles_m % group) height = ir.min(ir.sub(ir.c(t.tiles_m), first), height);
  m0 = ir.mul(ir.add(first, ir.remainder(inside, height)), t.bm);
  n0 = ir.mul(ir.divide(inside, height), t.columns);
  first_tile = split ? split : ir.c(0);
  tile_count = ir.c(t.split_tiles);
  if (const int64_t longer = t.tiles_k % t.splits)
    tile_count = ir.select(ir.less(first_tile, longer), tile_count, ir.c(t.split_tiles - 1));
}

/// Column by column within a group, so that blocks that run at the same time share the group's weights. A tile of B is read
/// once by all of the group's rows of tiles.
void MmaKernel::locate_in_group(const GpuGroups& groups, const GpuGroups::Group& group) {
  Value inside = ir.sub(ir.block_x(), ir.mul(group.tiles_before, t.tiles_n));
  m0 = ir.add(group.first_row, ir.mul(ir.remainder(inside, group.tiles), t.bm));
  n0 = ir.mul(ir.divide(inside, group.tiles), t.columns);
  matrix = group.number, row_end = group.end_row;
  first_tile = ir.c(0), tile_count = ir.c(t.split_tiles);
  arguments = groups.of_group(group.number);
}

void MmaKernel::locate_warp() {
  Value warp = ir.warp();
  warp_m = ir.remainder(warp, t.warps_m);
  warp_n = ir.remainder(ir.divide(warp, t.warps_m), t.warps_n);
  warp_k = ir.divide(warp, t.warps_m * t.warps_n);
}

TileFill MmaKernel::fill(const std::string& name, const SharedTile& tile, int64_t align, Value first,
                         int64_t extent, int64_t weight) {
  Value base = arguments.at(name);
  if (weight && tile.k_contiguous)
    base = ir.offset(base, ir.mul(arguments.at("ld" + name), extent * tile.element));
  else if (weight)
    base = ir.offset(base, extent * tile.element);
  Value number = name == "b" && matrix ? matrix : entry;
  if (number && arguments.count("stride_" + name))
    base = ir.offset(base, ir.mul(ir.mul(ir.to_i64(number), arguments.at("stride_" + name)), tile.element));
  return TileFill(ir, tile, t.threads, align,
                  {base, ir.mul(arguments.at("ld" + name), tile.element), first, extent,
                   ir.mul(first_tile, t.bk), t.splits, name == "a" ? row_end : Value()});
}

std::vector<TileFill> MmaKernel::fills() {
  std::vector<TileFill> out = {fill("a", t.a, t.align_a, m0, p.m)};
  for (int64_t w = 0; w < t.weights; ++w) out.push_back(fill("b", t.b, t.align_b, n0, p.n, w));
  return out;
}

std::vector<FragmentReader> MmaKernel::readers() {
  Value k_first = ir.mul(warp_k, t.steps * t.shape.k);
  std::vector<FragmentReader> out;
  out.emplace_back(ir, t.a, t.shape, true, ir.mul(warp_m, t.wm), m_tiles(), k_first, t.steps);
  for (int64_t w = 0; w < t.weights; ++w)
    out.emplace_back(ir, t.b, t.shape, false, ir.mul(warp_n, t.warp_columns), n_tiles() / t.weights, k_first, t.steps);
  return out;
}

/// Elements of K from a tile of the block's on, not negative; null when tiles are whole and nobody asks for
/// more than there are.
Value MmaKernel::k_left(Value tile_index, bool always) {
  if (!always && p.k % t.bk == 0) return nullptr;
  Value first = ir.mul(ir.add(first_tile, ir.mul(tile_index, t.splits)), t.bk);
  return ir.max(ir.sub(ir.c(p.k), first), ir.c(0));
}

/// `after_column` is called when all products with a column of B's tiles are there.
void MmaKernel::multiply_step(mlir::ValueRange fragments, const std::function<void(int64_t column)>& after_column) {
  const size_t a = size_t(t.shape.a_values), b = size_t(t.shape.b_values);
  mlir::ValueRange of_a = fragments.take_front(a * size_t(m_tiles())),
                   of_b = fragments.drop_front(of_a.size());
  for (size_t j = 0; j < size_t(n_tiles()); ++j) {
    for (size_t i = 0; i < size_t(m_tiles()); ++i)
      multiply(ir, t.shape, of_a.slice(a * i, a), of_b.slice(b * j, b),
               llvm::MutableArrayRef<Value>(sums).slice((i * size_t(n_tiles()) + j) * 4, 4));
    if (after_column) after_column(int64_t(j));
  }
}

/// The products of a step, among which the fragments of a later one are read, tile by tile: doubles leave no registers for
/// those of two whole steps.
Values MmaKernel::multiply_and_read(mlir::ValueRange fragments, const std::vector<FragmentReader>& reader, Value at,
                                    int64_t step) {
  Values of_a, of_b;
  const int64_t columns = n_tiles(), each = columns / t.weights;
  multiply_step(fragments, [&](int64_t j) {
    for (int64_t i = m_tiles() * j / columns; i < m_tiles() * (j + 1) / columns; ++i)
      of_a.append(reader[0].read_tile(ir.offset(at, tile_offset(0)), step, i));
    const size_t operand = size_t(1 + j / each);
    of_b.append(reader[operand].read_tile(ir.offset(at, tile_offset(operand)), step, j % each));
  });
  of_a.append(of_b);
  return of_a;
}

/// The main loop. A stage is overwritten one barrier after it was last read; one barrier a tile does for both
/// that and the arrival of the next tile.
void MmaKernel::accumulate() {
  const bool registers_a = TileFill::through_registers(t.align_a),
             registers_b = TileFill::through_registers(t.align_b);
  const std::vector<TileFill> fill = fills();
  const std::vector<FragmentReader> reader = readers();
  auto by_registers = [&](size_t i) { return i == 0 ? registers_a : registers_b; };
  auto read = [&](Value at, int64_t step) {
    Values out;
    for (size_t i = 0; i < reader.size(); ++i) out.append(reader[i].read(ir.offset(at, tile_offset(i)), step));
    return out;
  };
  std::vector<Values> in_flight(fill.size());
  auto begin_words = [&](Value index, mlir::ValueRange from, Value at) {
    for (size_t i = 0; i < fill.size(); ++i)
      if (by_registers(i))
        in_flight[i] = fill[i].begin(ir.offset(at, tile_offset(i)), from[i], k_left(index, true));
  };
  auto copy = [&](Value left, mlir::ValueRange from, Value at) {
    for (size_t i = 0; i < fill.size(); ++i)
      if (!by_registers(i)) fill[i].begin(ir.offset(at, tile_offset(i)), from[i], left);
  };
  // Only the last tile of K may be ragged; the others do without its comparisons.
  auto begin_copies = [&](Value index, mlir::ValueRange from, Value at) {
    Value left = k_left(index, false);
    if (!left) return copy(nullptr, from, at);
    ir.branch(ir.at_least(left, t.bk), [&] { copy(nullptr, from, at); });
    ir.branch(ir.less(left, t.bk), [&] { copy(left, from, at); });
  };
  auto finish = [&](Value at) {
    for (size_t i = 0; i < fill.size(); ++i) fill[i].finish(ir.offset(at, tile_offset(i)), in_flight[i]);
  };
  auto next = [&](mlir::ValueRange from) {
    Values out;
    for (size_t i = 0; i < fill.size(); ++i) out.push_back(fill[i].next(from[i]));
    return out;
  };

  Values from;
  for (const TileFill& each : fill) from.push_back(each.start());
  const int64_t ahead = std::max<int64_t>(1, t.ring - 1);
  if (t.dependent && !p.groups) {
    Values tile = from;
    for (int64_t i = 0; t.prefetch && i < ahead && (i + 1) * t.splits * t.bk <= p.k; ++i, tile = next(tile))
      for (size_t j = 0; j < fill.size(); ++j) fill[j].prefetch(tile[j]);
    ir.wait_for_predecessor();
    if (t.prefetch) ir.launch_dependents();
  }
  for (int64_t i = 0; i < ahead; ++i) {
    auto whole = [&] {
      Value at = stage(ir.c(i * t.stage_bytes));
      begin_words(ir.c(i), from, at);
      copy(k_left(ir.c(i), false), from, at);
      finish(at);
    };
    if (split && i > 0)
      ir.branch(ir.less(ir.c(i), tile_count), whole);
    else if (i < t.split_tiles)
      whole();
    ir.commit_copies();
    from = next(from);
  }
  ir.wait_copies(ahead - 1);
  ir.barrier();
  Values fragments = read(memory, 0);

  if (t.ring == 1) {
    for (int64_t step = 0; step < t.steps; ++step) {
      Values later = step + 1 < t.steps ? read(memory, step + 1) : Values();
      multiply_step(fragments);
      fragments = later;
    }
    return;
  }

  const size_t sum_count = sums.size(), fragment_count = fragments.size();
  Values carried = sums;
  carried.append(fragments);
  carried.append({ir.c(0), ir.c(ahead * t.stage_bytes)});
  carried.append(from);
  auto body = [&](Value index, mlir::ValueRange now) -> Values {
    sums.assign(now.begin(), now.begin() + ptrdiff_t(sum_count));
    Values present(now.slice(sum_count, fragment_count));
    mlir::ValueRange rest = now.drop_front(sum_count + fragment_count);
    auto following = [&](Value offset) {
      Value next = ir.add(offset, t.stage_bytes);
      return ir.select(ir.equal(next, ir.c(t.ring * t.stage_bytes)), ir.c(0), next);
    };
    mlir::ValueRange from = rest.drop_front(2);
    Value reading = rest[0], writing = rest[1], to_read = following(reading);
    Value coming = ir.add(index, ahead);
    auto start = [&] {
      begin_words(coming, from, stage(writing)); // beyond K: zeros
      if (!registers_a || !registers_b)
        ir.branch(ir.less(coming, tile_count),
                  [&] { begin_copies(coming, from, stage(writing)); });
      ir.commit_copies();
    };
    // So many copies at once hold up the products that follow them.
    const int64_t parts = t.shape.doubles && p.k % t.bk == 0 && !registers_a && !registers_b ? spread_over() : 1;
    auto start_part = [&](int64_t part) {
      Value wanted = ir.less(coming, tile_count);
      for (size_t i = 0; i < fill.size(); ++i)
        fill[i].begin_part(ir.offset(stage(writing), tile_offset(i)), from[i], wanted, size_t(part), size_t(parts));
      if (part + 1 == parts) ir.commit_copies();
    };
    for (int64_t step = 0; step < t.steps; ++step) {
      const bool last = step + 1 == t.steps;
      if (last) {
        if (t.steps == 1) start();
        finish(stage(writing));
        ir.wait_copies(ahead - 1);
        ir.barrier();
      }
      Value at = stage(last ? to_read : reading);
      const int64_t coming_step = last ? 0 : step + 1;
      Values later = t.shape.doubles ? Values() : read(at, coming_step);
      if (parts > 1 && step < parts)
        start_part(step);
      else if (step == 0 && !last)
        start();
      if (t.shape.doubles)
        later = multiply_and_read(present, reader, at, coming_step);
      else
        multiply_step(present);
      present = later;
    }
    Values out = sums;
    out.append(present);
    out.append({to_read, following(writing)});
    out.append(next(from));
    return out;
  };
  Values results = ir.rolled_loop(ir.c(0), tile_count, 1, carried, body);
  sums.assign(results.begin(), results.begin() + ptrdiff_t(sum_count));
}

void MmaKernel::emit() {
  memory = ir.shared_memory();
  if (p.groups) {
    if (t.dependent) ir.wait_for_predecessor();
    GpuGroups groups(ir, p, arguments, t.bm);
    const GpuGroups::Group group = groups.group_of(ir.divide(ir.block_x(), t.tiles_n));
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
  sums.assign(size_t(m_tiles() * n_tiles() * 4), zero);
  accumulate();
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
    for (; place.weight < 2; ++place.weight) MmaStore(ir, p, t, arguments, place, mlir::ValueRange(of_weight[place.weight])).emit();
    return;
  }
  const GpuGate gate(ir, p, arguments);
  MmaStore(ir, GpuGate::rest(p), t, gate.rest(arguments), place, {gate, of_weight[0], of_weight[1]}).emit();
}

} // namespace

Kernel MmaSync::emit(mlir::ModuleOp module, const Problem& p, const std::string& arch,
                     const Config& config) const {
  const MmaTiling t(p, compute_capability(arch), config);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = "sm_" + std::to_string(compute_capability(arch));
  kernel.args = gpu_arguments(p, t.split());
  kernel.align_a = t.align_a, kernel.align_b = t.align_b, kernel.align_d = t.align_d;
  GpuIr ir(module, kernel.target);
  ir.kernel({kernel_symbol, t.threads, t.resident}, p, kernel.args,
            [&](const GpuIr::Arguments& arguments) { MmaKernel(ir, p, t, arguments).emit(); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {p.groups ? GpuGroups::most_tiles(p, t.bm) * t.tiles_n : t.blocks() * p.batch, 1, 1};
  launch.block = {t.threads, 1, 1};
  launch.shared = t.shared;
  launch.dependent = t.dependent;
  kernel.launches.push_back(launch);
  if (t.split()) {
    const GpuSplitK split(p, t.splits);
    kernel.workspace = split.workspace();
    kernel.launches.push_back(split.emit_reduce(ir, kernel.args, t.align_d));
  }
  return kernel;
}

} // namespace deepgen
