// The kernel of an mfma or wmma config: tile t is multiplied from LDS while tile t + 1 waits in registers and
// is written to LDS, and tile t + 2 is loaded into them.
#include "templates/amd_matrix_fill.h"
#include "templates/gpu_split_k.h"
#include "templates/sizes.h"

#include <deque>

namespace deepgen {
namespace {

class MatrixBlock {
public:
  MatrixBlock(AmdIr& builder, const Problem& problem, const MatrixTiling& tiling,
              const GpuIr::Arguments& args)
      : ir(builder), p(problem), t(tiling), args_(args) {}

  void emit(int64_t align_d);

private:
  /// What the loop over K carries.
  struct State {
    Values a, b;               ///< where the thread's next pieces are
    Values loaded_a, loaded_b; ///< of the tile behind the one that is multiplied
    Value slot;                ///< offset of the stage that is multiplied
    Values rows, columns; ///< fragments of its next step: pieces of 16 bytes a lane, of each instruction's
                          ///< rows of A, columns of B
    Values sums;
    Values pack() const;
    State unpacked(const Values&) const; ///< the same sizes, other values
  };
  /// Memory operations that are emitted between matrix instructions.
  using Queue = std::deque<std::function<void()>>;

  void find_tile();
  void find_lane();
  Value operand(const char* name, const MatrixSide&);
  Value pitch(const char* name, const MatrixSide&);
  int64_t row_tiles() const { return t.wm / t.size; }
  int64_t column_tiles() const { return t.wn / t.size; }
  void read_step(State& into, Value slot, int64_t step, Queue&);
  void write_tile(const State&, Value slot, Queue&);
  void load_tile(State&, Queue&);
  void multiply(const Values& rows, const Values& columns, Values& sums, Queue& between);
  void wait_for_tile(State&, Value slot, Queue&);
  State first_state();
  State tile(State, Value left);
  void last_tile(State&);
  void store(const State&, int64_t align_d);
  std::vector<Fragment> fragments(const State&, int64_t row_tile, Value row, const Values& columns);

  AmdIr& ir;
  const Problem& p;
  const MatrixTiling& t;
  const GpuIr::Arguments& args_;
  Value entry_, split_, block_m_, block_n_; ///< block_m, block_n: the tile's first row and column
  Value lane_row_, lane_group_, wave_m_,
      wave_n_;          ///< wave_m, wave_n: the first row and column of the wave in the tile
  Value lds_a_, lds_b_; ///< where the lane reads, in stage 0
  std::unique_ptr<MatrixFill> a_, b_;
  Value first_tile_, tiles_; ///< of the split
};

Values MatrixBlock::State::pack() const {
  Values all = {slot};
  for (const Values* values : {&a, &b, &loaded_a, &loaded_b, &rows, &columns, &sums})
    llvm::append_range(all, *values);
  return all;
}

MatrixBlock::State MatrixBlock::State::unpacked(const Values& all) const {
  State s = *this;
  const Value* next = all.data();
  s.slot = *next++;
  for (Values* values : {&s.a, &s.b, &s.loaded_a, &s.loaded_b, &s.rows, &s.columns, &s.sums})
    for (Value& value : *values) value = *next++;
  return s;
}

/// Blocks are dealt out to the dies in turn: each gets consecutive tiles. Tiles go down columns of `group`
/// before they go right, so that neighbours share operands in L2.
void MatrixBlock::find_tile() {
  Value index = ir.block_x();
  split_ = ir.block_y();
  const int64_t grid = t.tiles_m * t.tiles_n * p.batch;
  if (t.xcds > 1) {
    Value die = ir.remainder(index, t.xcds), place = ir.divide(index, t.xcds);
    Value before = ir.add(ir.mul(die, grid / t.xcds), ir.min(die, ir.c(grid % t.xcds)));
    index = ir.add(before, place);
  }
  if (p.batch > 1) {
    entry_ = ir.divide(index, t.tiles_m * t.tiles_n);
    index = ir.sub(index, ir.mul(entry_, t.tiles_m * t.tiles_n));
  }
  const int64_t group = std::min(t.group, t.tiles_m);
  Value band = ir.divide(index, group * t.tiles_n);
  Value inside = ir.sub(index, ir.mul(band, group * t.tiles_n)), first = ir.mul(band, group);
  Value rows = t.tiles_m % group ? ir.min(ir.sub(ir.c(t.tiles_m), first), ir.c(group)) : ir.c(group);
  Value n = ir.divide(inside, rows), m = ir.sub(inside, ir.mul(n, rows));
  block_m_ = ir.mul(ir.add(first, m), t.bm), block_n_ = ir.mul(n, t.bn);
}

void MatrixBlock::find_lane() {
  Value wave = ir.wave(), lane = ir.wave_lane();
  lane_row_ = ir.remainder(lane, t.size), lane_group_ = ir.divide(lane, t.size);
  wave_m_ = ir.mul(ir.divide(wave, t.waves_n), t.wm);
  wave_n_ = ir.mul(ir.remainder(wave, t.waves_n), t.wn);
  Value shared = ir.shared_memory();
  Value along_k = t.shape.groups == 1 ? ir.c(0) : ir.mul(lane_group_, 16 * t.shape.pieces());
  auto base = [&](Value first) { return ir.add(ir.mul(ir.add(first, lane_row_), t.pitch), along_k); };
  lds_a_ = ir.offset(ir.offset(shared, base(wave_m_)), t.a.offset);
  lds_b_ = ir.offset(ir.offset(shared, base(wave_n_)), t.b.offset);
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

/// The fragments of one step, in pieces of 16 bytes a lane; they replace those in `into` as they are emitted.
void MatrixBlock::read_step(State& into, Value slot, int64_t step, Queue& queue) {
  mlir::Type type = ir.lanes(4, ir.i32);
  auto read = [&](Values& fragments, Value lane, int64_t count) {
    const int64_t pieces = t.shape.pieces();
    fragments.assign(size_t(count * pieces), Value());
    Value base = ir.offset(lane, slot);
    for (int64_t i = 0; i < count * pieces; ++i) {
      Value* place = &fragments[size_t(i)];
      const int64_t at = i / pieces * t.size * t.pitch + step * t.shape.step_bytes() + i % pieces * 16;
      queue.push_back([this, place, base, at, type] { *place = ir.load(type, ir.offset(base, at), 16); });
    }
  };
  read(into.columns, lds_b_, column_tiles());
  read(into.rows, lds_a_, row_tiles());
}

void MatrixBlock::write_tile(const State& s, Value slot, Queue& queue) {
  auto of = [&](MatrixFill& fill, const Values& loaded) {
    for (int64_t i = 0; i < fill.writes(); ++i)
      queue.push_back([&fill, loaded, i, slot] { fill.write(loaded, i, slot); });
  };
  of(*a_, s.loaded_a), of(*b_, s.loaded_b);
}

void MatrixBlock::load_tile(State& s, Queue& queue) {
  auto of = [&](MatrixFill& fill, const Values& pointers, Values& loaded) {
    loaded.assign(size_t(fill.loads()), Value());
    for (int64_t i = 0; i < fill.loads(); ++i) {
      Value* place = &loaded[size_t(i)];
      queue.push_back([&fill, pointers, place, i] { *place = fill.load(pointers, i); });
    }
  };
  of(*a_, s.a, s.loaded_a), of(*b_, s.b, s.loaded_b);
}

void MatrixBlock::multiply(const Values& rows, const Values& columns, Values& sums, Queue& between) {
  const int64_t all = t.shape.instructions() * row_tiles() * column_tiles(), pieces = t.shape.pieces();
  const int64_t total = int64_t(between.size());
  int64_t done = 0;
  for (int64_t part = 0; part < t.shape.instructions(); ++part)
    for (int64_t i = 0; i < row_tiles(); ++i)
      for (int64_t j = 0; j < column_tiles(); ++j) {
        Value& sum = sums[size_t(i * column_tiles() + j)];
        sum = t.shape.multiply(ir, &columns[size_t(j * pieces)], &rows[size_t(i * pieces)], sum, part);
        // Spread over the first three quarters, so that what is read is there when the next step begins.
        const int64_t due = std::min(total, (++done * total * 4 + all * 3 - 1) / (all * 3));
        while (total - int64_t(between.size()) < due) between.front()(), between.pop_front();
      }
  for (; !between.empty(); between.pop_front()) between.front()();
}

/// Makes the tile that is in registers visible in LDS, and reads its first fragments.
void MatrixBlock::wait_for_tile(State& s, Value slot, Queue& queue) {
  ir.barrier();
  s.slot = slot;
  read_step(s, slot, 0, queue);
}

MatrixBlock::State MatrixBlock::first_state() {
  // If K ends within a tile, that tile is the first one: only there elements are guarded.
  const int64_t depth = t.tiles_k == 1 ? p.k : p.k - (t.tiles_k - 1) * t.bk;
  const bool ragged = depth % t.bk != 0;
  State s;
  Value first = ir.max(ir.sub(ir.mul(first_tile_, t.bk), ir.c(t.bk - depth)), ir.c(0));
  s.a = a_->start(first), s.b = b_->start(first), s.slot = ir.c(0);
  Queue queue;
  auto flush = [&] {
    for (; !queue.empty(); queue.pop_front()) queue.front()();
  };
  if (ragged) {
    Value limit = ir.select(ir.equal(first_tile_, ir.c(0)), ir.c(depth), ir.c(t.bk));
    s.loaded_a = a_->load_below(s.a, limit, p.k), s.loaded_b = b_->load_below(s.b, limit, p.k);
  } else {
    load_tile(s, queue);
    flush();
  }
  write_tile(s, s.slot, queue);
  flush();
  if (t.tiles_k > 1) {
    Value next = ir.min(ir.add(ir.mul(first_tile_, t.bk), depth), ir.c(p.k - t.bk));
    s.a = a_->start(next), s.b = b_->start(next);
    load_tile(s, queue);
    flush();
  }
  wait_for_tile(s, s.slot, queue);
  flush();
  s.sums.assign(size_t(row_tiles() * column_tiles()), ir.zero(t.shape.sum_type(ir)));
  return s;
}

/// `left`: tiles behind this one. The last step's multiplication hides the reads of the next tile's first
/// fragments.
MatrixBlock::State MatrixBlock::tile(State s, Value left) {
  Value more = ir.select(ir.at_least(left, 2), ir.c(1), ir.c(0)); // else the loads are repeated
  Value next = t.stages == 1 ? s.slot : ir.sub(ir.c(t.stage_bytes()), s.slot);
  State after = s;
  after.a = a_->advance(s.a, more), after.b = b_->advance(s.b, more);
  Queue queue;
  for (int64_t step = 0; step < t.steps; ++step) {
    const Values rows = s.rows, columns = s.columns;
    const bool last = step + 1 == t.steps;
    if (!last) read_step(s, s.slot, step + 1, queue);
    if (last && t.stages == 1) ir.barrier();
    if (t.stages == 1 ? last : step == 0) write_tile(s, next, queue);
    if (last) {
      for (; !queue.empty(); queue.pop_front()) queue.front()();
      wait_for_tile(after, next, queue);
      load_tile(after, queue);
    }
    multiply(rows, columns, s.sums, queue);
  }
  // Else the first fragments, which are read here and ahead of the loop, would be read when it begins.
  ir.keep_order();
  after.sums = s.sums;
  return after;
}

void MatrixBlock::last_tile(State& s) {
  Queue queue;
  for (int64_t step = 0; step < t.steps; ++step) {
    const Values rows = s.rows, columns = s.columns;
    if (step + 1 < t.steps) read_step(s, s.slot, step + 1, queue);
    multiply(rows, columns, s.sums, queue);
  }
}

/// A lane's values of one row of D: `width` consecutive columns for each instruction, or pair of them.
std::vector<Fragment> MatrixBlock::fragments(const State& s, int64_t i, Value row, const Values& columns) {
  std::vector<Fragment> out;
  const int64_t together = t.paired ? 2 : 1;
  for (int64_t j = 0; j < column_tiles(); j += together) {
    Fragment f{row, columns[size_t(j / together)], {}};
    for (int64_t k = 0; k < together; ++k)
      llvm::append_range(f.values, ir.unpack(s.sums[size_t(i * column_tiles() + j + k)]));
    out.push_back(f);
  }
  return out;
}

void MatrixBlock::store(const State& s, int64_t align_d) {
  const Bounds bounds{p.m % t.bm != 0, p.n % t.bn != 0};
  const int64_t together = t.paired ? 2 : 1, width = t.shape.values * together;
  Value first_column = ir.add(ir.add(block_n_, wave_n_), ir.mul(lane_group_, width));
  Value first_row = ir.add(ir.add(block_m_, wave_m_), lane_row_);
  Values columns;
  for (int64_t j = 0; j < column_tiles(); j += together) columns.push_back(ir.add(first_column, j * t.size));
  std::unique_ptr<GpuEpilogue> epilogue;
  if (t.splits == 1) epilogue = std::make_unique<GpuEpilogue>(ir, p, args_, entry_, align_d);
  for (int64_t i = 0; i < row_tiles(); ++i) {
    const std::vector<Fragment> all = fragments(s, i, ir.add(first_row, i * t.size), columns);
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

void MatrixBlock::emit(int64_t align_d) {
  find_tile();
  find_lane();
  first_tile_ = ir.c(0), tiles_ = ir.c(t.tiles_k);
  if (t.splits > 1) {
    first_tile_ = ir.mul(split_, t.split_tiles);
    tiles_ = ir.min(ir.c(t.split_tiles), ir.sub(ir.c(t.tiles_k), first_tile_));
  }
  a_ = std::make_unique<MatrixFill>(ir, t, t.a, operand("a", t.a), pitch("a", t.a), block_m_, false);
  b_ = std::make_unique<MatrixFill>(ir, t, t.b, operand("b", t.b), pitch("b", t.b), block_n_, true);
  State s = first_state();
  if (t.tiles_k > 1) {
    Value behind = ir.sub(tiles_, ir.c(1));
    Values last = ir.rolled_loop(ir.c(0), behind, 1, s.pack(), [&](Value index, mlir::ValueRange carried) {
      return tile(s.unpacked(Values(carried)), ir.sub(behind, index)).pack();
    });
    s = s.unpacked(last);
  }
  last_tile(s);
  store(s, align_d);
}

} // namespace

Kernel AmdMatrix::emit(mlir::ModuleOp module, const Problem& p, const std::string& arch,
                       const Config& config) const {
  const MatrixTiling t(p, arch, config);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = arch;
  kernel.args = gpu_arguments(p, t.splits > 1);
  kernel.align_a = size_of(p.a), kernel.align_b = size_of(p.b), kernel.align_d = t.width_d * size_of(p.d);
  AmdIr ir(module, kernel.target);
  GpuEntry entry;
  entry.name = kernel_symbol, entry.threads = t.threads, entry.min_blocks = t.blocks,
  entry.shared = t.shared_bytes();
  ir.kernel(entry, p, kernel.args,
            [&](const GpuIr::Arguments& args) { MatrixBlock(ir, p, t, args).emit(kernel.align_d); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {t.tiles_m * t.tiles_n * p.batch, t.splits, 1};
  launch.block = {t.threads, 1, 1};
  kernel.launches.push_back(launch);
  if (t.splits > 1) {
    const GpuSplitK split(p, t.splits);
    kernel.workspace = split.workspace();
    kernel.launches.push_back(split.emit_reduce(ir, kernel.args, kernel.align_d));
  }
  return kernel;
}

} // namespace deepgen
