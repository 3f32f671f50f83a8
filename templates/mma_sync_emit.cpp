// The kernel of one config of mma_sync.
#include "templates/gpu_split_k.h"
#include "templates/mma_sync.h"
#include "templates/mma_sync_fill.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deepgen {
namespace {

class MmaKernel {
public:
  MmaKernel(GpuIr& ir, const Problem& p, const MmaTiling& t, const GpuIr::Arguments& arguments)
      : ir(ir), p(p), t(t), arguments(arguments) {}
  void emit();

private:
  void locate_block();
  void locate_warp();
  TileFill fill(const std::string& name, const SharedTile&, int64_t align, Value first, int64_t extent);
  Value stage(Value offset) { return ir.offset(memory, offset); }
  Value k_left(Value tile_index, bool always);
  void accumulate();
  void multiply_step(mlir::ValueRange fragments);
  void stage_sums(int64_t pass);
  void store_pass(int64_t pass, GpuEpilogue&);
  Values staged(Value row, Value column);
  Value sum(Value x, Value y) {
    if (p.accumulate != Type::i32) return ir.addf(x, y);
    return mlir::arith::AddIOp::create(ir.b, ir.loc, x, y); // may wrap
  }

  GpuIr& ir;
  const Problem& p;
  const MmaTiling& t;
  const GpuIr::Arguments& arguments;
  Value memory, m0, n0, entry, split, first_tile, tile_count; ///< entry, split: null when there is one
  Value warp_m, warp_n, warp_k;
  Values sums;

  int64_t m_tiles() const { return t.wm / 16; }
  int64_t n_tiles() const { return t.wn / 8; }
};

/// Blocks that run at the same time should share rows of A and columns of B: bands of `group` rows of tiles
/// are visited column by column. Splits and batch entries follow each other. Split s has the tiles s, s + splits, ... of K:
/// blocks that run at the same time then read neighbouring parts of the same rows.
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
  n0 = ir.mul(ir.divide(inside, height), t.bn);
  first_tile = split ? split : ir.c(0);
  tile_count = ir.c(t.split_tiles);
  if (const int64_t longer = t.tiles_k % t.splits)
    tile_count = ir.select(ir.less(first_tile, longer), tile_count, ir.c(t.split_tiles - 1));
}

void MmaKernel::locate_warp() {
  Value warp = ir.warp();
  warp_m = ir.remainder(warp, t.warps_m);
  warp_n = ir.remainder(ir.divide(warp, t.warps_m), t.warps_n);
  warp_k = ir.divide(warp, t.warps_m * t.warps_n);
}

TileFill MmaKernel::fill(const std::string& name, const SharedTile& tile, int64_t align, Value first,
                         int64_t extent) {
  Value base = arguments.at(name);
  if (entry)
    base = ir.offset(base, ir.mul(ir.mul(ir.to_i64(entry), arguments.at("stride_" + name)), tile.element));
  return TileFill(
      ir, tile, t.threads, align,
      {base, ir.mul(arguments.at("ld" + name), tile.element), first, extent, ir.mul(first_tile, t.bk),
       t.splits});
}

/// Elements of K from a tile of the block's on; null when tiles are whole and nobody asks for more than there
/// are.
Value MmaKernel::k_left(Value tile_index, bool always) {
  if (!always && p.k % t.bk == 0) return nullptr;
  return ir.sub(ir.c(p.k), ir.mul(ir.add(first_tile, ir.mul(tile_index, t.splits)), t.bk));
}

void MmaKernel::multiply_step(mlir::ValueRange fragments) {
  const size_t a = size_t(t.shape.a_values), b = size_t(t.shape.b_values);
  mlir::ValueRange of_a = fragments.take_front(a * size_t(m_tiles())),
                   of_b = fragments.drop_front(of_a.size());
  for (size_t j = 0; j < size_t(n_tiles()); ++j)
    for (size_t i = 0; i < size_t(m_tiles()); ++i)
      multiply(ir, t.shape, of_a.slice(a * i, a), of_b.slice(b * j, b),
               llvm::MutableArrayRef<Value>(sums).slice((i * size_t(n_tiles()) + j) * 4, 4));
}

/// The main loop. A stage is overwritten one barrier after it was last read; one barrier a tile does for both
/// that and the arrival of the next tile.
void MmaKernel::accumulate() {
  const bool registers_a = TileFill::through_registers(t.align_a),
             registers_b = TileFill::through_registers(t.align_b);
  const TileFill fill_a = fill("a", t.a, t.align_a, m0, p.m), fill_b = fill("b", t.b, t.align_b, n0, p.n);
  Value k_first = ir.mul(warp_k, t.steps * t.shape.k);
  const FragmentReader read_a(ir, t.a, t.shape, true, ir.mul(warp_m, t.wm), m_tiles(), k_first, t.steps);
  const FragmentReader read_b(ir, t.b, t.shape, false, ir.mul(warp_n, t.wn), n_tiles(), k_first, t.steps);
  auto read = [&](Value at, int64_t step) {
    Values out = read_a.read(at, step);
    out.append(read_b.read(ir.offset(at, t.a.bytes()), step));
    return out;
  };
  Values in_flight_a, in_flight_b;
  auto begin = [&](Value at, Value index, Value a, Value b) {
    in_flight_a = fill_a.begin(at, a, k_left(index, registers_a));
    in_flight_b = fill_b.begin(ir.offset(at, t.a.bytes()), b, k_left(index, registers_b));
  };
  auto finish = [&](Value at) {
    fill_a.finish(at, in_flight_a);
    fill_b.finish(ir.offset(at, t.a.bytes()), in_flight_b);
  };

  Value a = fill_a.start(), b = fill_b.start();
  const int64_t ahead = std::max<int64_t>(1, t.ring - 1);
  for (int64_t i = 0; i < ahead; ++i) {
    auto whole = [&] {
      begin(stage(ir.c(i * t.stage_bytes)), ir.c(i), a, b), finish(stage(ir.c(i * t.stage_bytes)));
    };
    if (split && i > 0)
      ir.branch(ir.less(ir.c(i), tile_count), whole);
    else if (i < t.split_tiles)
      whole();
    ir.commit_copies();
    a = fill_a.next(a), b = fill_b.next(b);
  }
  ir.wait_copies(ahead - 1);
  ir.barrier();
  Values fragments = read(memory, 0);

  if (t.ring == 1) {
    for (int64_t step = 0; step < t.steps; ++step) {
      Values next = step + 1 < t.steps ? read(memory, step + 1) : Values();
      multiply_step(fragments);
      fragments = next;
    }
    return;
  }

  const size_t sum_count = sums.size(), fragment_count = fragments.size();
  Values carried = sums;
  carried.append(fragments);
  carried.append({ir.c(0), ir.c(ahead * t.stage_bytes), a, b});
  auto body = [&](Value index, mlir::ValueRange now) -> Values {
    sums.assign(now.begin(), now.begin() + ptrdiff_t(sum_count));
    Values present(now.slice(sum_count, fragment_count));
    mlir::ValueRange rest = now.drop_front(sum_count + fragment_count);
    auto following = [&](Value offset) {
      Value next = ir.add(offset, t.stage_bytes);
      return ir.select(ir.equal(next, ir.c(t.ring * t.stage_bytes)), ir.c(0), next);
    };
    Value reading = rest[0], writing = rest[1], to_read = following(reading);
    Value coming = ir.add(index, ahead);
    auto start = [&] {
      auto go = [&] { begin(stage(writing), coming, rest[2], rest[3]); };
      if (registers_a || registers_b)
        go(); // elements beyond K read as zero
      else
        ir.branch(ir.less(coming, tile_count), go);
      ir.commit_copies();
    };
    for (int64_t step = 0; step < t.steps; ++step) {
      const bool last = step + 1 == t.steps;
      if (last) {
        if (t.steps == 1) start();
        finish(stage(writing));
        ir.wait_copies(ahead - 1);
        ir.barrier();
      }
      Values next = read(stage(last ? to_read : reading), last ? 0 : step + 1);
      if (step == 0 && !last) start();
      multiply_step(present);
      present = next;
    }
    Values out = sums;
    out.append(present);
    out.append({to_read, following(writing), fill_a.next(rest[2]), fill_b.next(rest[3])});
    return out;
  };
  Values results = ir.rolled_loop(ir.c(0), tile_count, 1, carried, body);
  sums.assign(results.begin(), results.begin() + ptrdiff_t(sum_count));
}

/// Writes the accumulators of some rows of every warp to shared memory, one copy for each warp along K.
void MmaKernel::stage_sums(int64_t pass) {
  Value lane = ir.lane(), g = ir.shift_right_bits(lane, 2), four = ir.bit_and(lane, 3);
  const bool pairs_a = t.a.load == FragmentLoad::matrix_bytes,
             pairs_b = t.b.load == FragmentLoad::matrix_bytes;
  Value row = ir.add(ir.mul(warp_m, 16 * t.pass_tiles), pairs_a ? ir.shift_left(g, 1) : g);
  row = ir.add(row, ir.mul(warp_k, t.staging_rows));
  Value column = ir.add(ir.mul(warp_n, t.wn), ir.shift_left(four, pairs_b ? 2 : 1));
  Value at = ir.offset(memory, ir.mul(ir.add(ir.mul(row, t.staging_pitch), column), t.accumulator_bytes));
  for (int64_t i = 0; i < t.pass_tiles; ++i)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t j = 0; j < n_tiles(); j += pairs_b ? 2 : 1) {
        const size_t first = size_t(((pass * t.pass_tiles + i) * n_tiles() + j) * 4 + 2 * h);
        Values values = {sums[first], sums[first + 1]};
        if (pairs_b) values = {sums[first], sums[first + 4], sums[first + 1], sums[first + 5]};
        const int64_t rows = i * 16 + (pairs_a ? h : 8 * h);
        ir.store(ir.pack(values), ir.offset(at, (rows * t.staging_pitch + j * 8) * t.accumulator_bytes),
                 std::min<int64_t>(16, int64_t(values.size()) * t.accumulator_bytes));
      }
}

Values MmaKernel::staged(Value row, Value column) {
  const int64_t lanes = std::min(t.vector, 16 / t.accumulator_bytes);
  mlir::Type type = ir.lanes(lanes, sums[0].getType());
  Value at = ir.offset(memory, ir.mul(ir.add(ir.mul(row, t.staging_pitch), column), t.accumulator_bytes));
  Values out;
  for (int64_t first = 0; first < t.vector; first += lanes) {
    Values total;
    for (int64_t k = 0; k < t.k_warps; ++k) {
      const int64_t offset = (k * t.staging_rows * t.staging_pitch + first) * t.accumulator_bytes;
      Values part = ir.unpack(ir.load(type, ir.offset(at, offset), lanes * t.accumulator_bytes));
      for (size_t i = 0; i < part.size(); ++i)
        if (k == 0)
          total.push_back(part[i]);
        else
          total[i] = sum(total[i], part[i]);
    }
    out.append(total);
  }
  return out;
}

void MmaKernel::store_pass(int64_t pass, GpuEpilogue& epilogue) {
  const int64_t in_row = t.bn / t.vector, total = t.staging_rows * in_row;
  const int64_t rounds = (total + t.threads - 1) / t.threads;
  // Several at once hide the latency of C and other operands, where accumulators of later passes leave the
  // registers.
  const bool crowded = t.pass_tiles * 16 != t.wm && t.wm * t.wn > 2048;
  int64_t together = total % t.threads ? 1 : std::max<int64_t>(1, (crowded ? 8 : 16) / t.vector);
  while (rounds % together) together /= 2;
  const Bounds bounds{p.m % t.bm != 0, p.n % t.bn != 0};
  ir.rolled_loop(ir.thread(), ir.c(total), t.threads * together, [&](Value index) {
    llvm::SmallVector<Fragment, 2> fragments;
    for (int64_t i = 0; i < together; ++i) {
      Value at = ir.add(index, i * t.threads);
      Value row = ir.divide(at, in_row), column = ir.mul(ir.remainder(at, in_row), t.vector);
      Values values = staged(row, column);
      Value in_d = row;
      if (t.pass_tiles * 16 != t.wm)
        in_d = ir.add(
            ir.add(ir.mul(ir.divide(row, 16 * t.pass_tiles), t.wm), ir.remainder(row, 16 * t.pass_tiles)),
            pass * 16 * t.pass_tiles);
      fragments.push_back({ir.add(m0, in_d), ir.add(n0, column), values});
    }
    if (t.split())
      GpuSplitK(p, t.splits).store(ir, arguments, split, entry, fragments, bounds);
    else
      epilogue.store(fragments, bounds);
  });
}

void MmaKernel::emit() {
  if (t.dependent) ir.wait_for_predecessor();
  memory = ir.shared_memory();
  locate_block();
  locate_warp();
  const bool integer = p.accumulate == Type::i32;
  Value zero = integer ? ir.c(0) : ir.number(t.shape.doubles ? ir.f64 : ir.f32, 0.0);
  sums.assign(size_t(m_tiles() * n_tiles() * 4), zero);
  accumulate();
  if (t.dependent || t.split()) ir.launch_dependents();
  GpuEpilogue epilogue(ir, p, arguments, entry, t.align_d);
  ir.wait_copies(0);
  for (int64_t pass = 0; pass < m_tiles() / t.pass_tiles; ++pass) {
    ir.barrier();
    stage_sums(pass);
    ir.barrier();
    store_pass(pass, epilogue);
  }
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
  ir.kernel({kernel_symbol, t.threads}, p, kernel.args,
            [&](const GpuIr::Arguments& arguments) { MmaKernel(ir, p, t, arguments).emit(); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {t.blocks() * p.batch, 1, 1};
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
