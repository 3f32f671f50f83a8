// The kernel of a simt config: a multistage pipeline through shared memory around a register-tiled outer
// product.
#include "templates/gpu/gpu_gate.h"
#include "templates/gpu/gpu_groups.h"
#include "templates/gpu/gpu_split_k.h"
#include "templates/gpu/simt/simt_load.h"
#include "templates/ir/amd_ir.h"
#include "templates/ir/nv_ir.h"

#include "base/kernel/device.h"
#include "templates/core/sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace deepgen {
namespace {

class SimtBlock {
public:
  SimtBlock(GpuIr& builder, const Gemm& problem, const SimtTiling& tiling, const GpuIr::Arguments& args)
      : ir(builder), p(problem), t(tiling), args_(args), sizes_(builder, problem, args),
        tiles_m_(ir.tiles(sizes_.m, tiling.bm)), tiles_n_(ir.tiles(sizes_.n, tiling.columns())) {}

  void emit(int64_t align_d);

private:
  /// What the loop over k carries.
  struct State {
    Values from; ///< where the thread reads its next tiles, of A and each weight
    Value read;  ///< offset of the stage that is multiplied
    Values fragment_a, fragment_b, sums;
    Values pack() const;
    State unpacked(const Values&) const; ///< the same sizes, other values
  };

  void find_tile();
  void find_tile_in_group(const GpuGroups&, const GpuGroups::Group&);
  void emit_tile(int64_t align_d);
  void find_lane();
  Value operand(const char* name, const SimtSide&);
  Value pitch(const char* name, const SimtSide&);
  void make_loaders();
  Value second_weight(Value b, Value pitch);
  Values fragment(const SimtSide&, Value lane_base, int64_t lanes, int64_t count, Value slot, int64_t k);
  void read_fragments(State&, Value slot, int64_t k);
  Values multiply(const Values& a, const Values& b, Values sums);
  Value next_slot(Value slot);
  Value previous_slot(Value slot);
  Value remaining(Value tile);
  State first_state();
  void copy(const State&, int64_t from, int64_t to, Value slot, Value remaining);
  void advance(State&);
  State asynchronous_tile(State, Value tile);
  State converted_tile(State, Value tile);
  Values load(const State&, Value remaining);
  void put(const Values& loaded, Value slot, Value remaining);
  std::vector<Fragment> row_of(const Values& sums, int64_t i, int64_t weight,
                               const std::vector<Value>& columns);
  void find_share();
  Values sum_up();
  void store(const Values& sums, int64_t align_d);

  // Rules let t.async be true for NVIDIA GPUs alone, and t.dot be 2 for AMD GPUs.
  NvIr& nv() { return static_cast<NvIr&>(ir); }
  AmdIr& amd() { return static_cast<AmdIr&>(ir); }

  GpuIr& ir;
  const Gemm& p;
  const SimtTiling& t;
  GpuIr::Arguments args_;
  const GpuSizes sizes_;
  const SizeValue tiles_m_, tiles_n_;
  Value matrix_, row_end_;                           ///< of B; of the group. Null without groups
  Value entry_, split_, block_m_, block_n_;          ///< block_m, block_n: the tile's first row and column
  Value first_m_, first_n_;                          ///< the thread's first row and column
  Value lane_a_, lane_b_;                            ///< the same in shared memory, pointers into stage 0
  std::vector<std::unique_ptr<SimtLoader>> loaders_; ///< of A and each weight
  Value first_k_, depth_, tiles_;                    ///< of the split: where it starts, how far it goes
};

Values SimtBlock::State::pack() const {
  Values all = from;
  all.push_back(read);
  llvm::append_range(all, fragment_a);
  llvm::append_range(all, fragment_b);
  llvm::append_range(all, sums);
  return all;
}

SimtBlock::State SimtBlock::State::unpacked(const Values& all) const {
  State s = *this;
  const Value* next = all.data();
  for (Value& value : s.from) value = *next++;
  s.read = *next++;
  for (Values* values : {&s.fragment_a, &s.fragment_b, &s.sums})
    for (Value& value : *values) value = *next++;
  return s;
}

/// Blocks go down columns of `group` tiles before they go right, so that neighbours in time share operands in
/// L2.
void SimtBlock::find_tile() {
  Value index = ir.block_x();
  if (p.batch > 1) {
    const SizeValue tiles = ir.product(tiles_m_, tiles_n_);
    entry_ = ir.divide(index, tiles);
    index = ir.sub(index, ir.mul(entry_, tiles));
  }
  split_ = ir.block_y();
  const int64_t group = tiles_m_.is_constant() ? std::min(t.group, t.tiles_m) : t.group;
  const SizeValue of_band = ir.product(tiles_n_, group);
  Value band = ir.divide(index, of_band);
  Value inside = ir.sub(index, ir.mul(band, of_band)), first = ir.mul(band, group), m, n;
  if (group == 1 || !tiles_m_.may_leave(group)) {
    n = ir.divide(inside, group), m = ir.sub(inside, ir.mul(n, group));
  } else {
    Value rows = ir.min(ir.sub(ir.c(tiles_m_), first), ir.c(group));
    n = ir.divide(inside, rows), m = ir.sub(inside, ir.mul(n, rows));
  }
  block_m_ = ir.mul(ir.add(first, m), t.bm), block_n_ = ir.mul(n, t.columns());
}

void SimtBlock::find_tile_in_group(const GpuGroups& groups, const GpuGroups::Group& group) {
  Value inside = ir.sub(ir.block_x(), ir.mul(group.tiles_before, tiles_n_)),
        n = ir.divide(inside, group.tiles);
  Value m = ir.sub(inside, ir.mul(n, group.tiles));
  block_m_ = ir.add(group.first_row, ir.mul(m, t.bm)), block_n_ = ir.mul(n, t.columns());
  matrix_ = group.number, row_end_ = group.end_row;
  args_ = groups.of_group(group.number);
}

/// Lanes 2 i and 2 i + 1 read the same chunk of B, and half a warp two chunks of A: no two different words of
/// one bank.
void SimtBlock::find_lane() {
  Value lane = ir.lane(), warp = ir.warp(), m, n;
  if (t.lanes_m == 1) {
    m = ir.c(0), n = lane;
  } else {
    Value high = ir.divide(lane, 2 * t.lanes_n);
    m = ir.add(ir.bit_and(lane, 1), ir.mul(high, 2));
    n = ir.remainder(ir.divide(lane, 2), t.lanes_n);
  }
  Value warp_m = ir.divide(warp, t.warps_n), warp_n = ir.remainder(warp, t.warps_n);
  Value thread_m = ir.add(ir.mul(warp_m, t.lanes_m * t.tm), ir.mul(m, t.chunk_m()));
  Value thread_n = ir.add(ir.mul(warp_n, t.lanes_n * t.thread_columns()), ir.mul(n, t.chunk_n()));
  Value shared = ir.shared_memory();
  lane_a_ = ir.offset(ir.offset(shared, ir.mul(thread_m, t.element)), t.a.offset);
  lane_b_ = ir.offset(ir.offset(shared, ir.mul(thread_n, t.element)), t.b.offset);
  first_m_ = ir.add(block_m_, thread_m), first_n_ = ir.add(block_n_, thread_n);
}

Value SimtBlock::operand(const char* name, const SimtSide& side) {
  Value base = args_.at(name), number = matrix_ && &side == &t.b ? matrix_ : entry_;
  const auto stride = args_.find(std::string("stride_") + name);
  if (!number || stride == args_.end()) return base;
  return ir.offset(base, ir.mul(ir.mul(ir.to_i64(number), stride->second), side.bytes));
}

Value SimtBlock::pitch(const char* name, const SimtSide& side) {
  return ir.mul(args_.at(std::string("ld") + name), side.bytes);
}

Values SimtBlock::fragment(const SimtSide& side, Value lane_base, int64_t lanes, int64_t count, Value slot,
                           int64_t k) {
  mlir::Type type = t.element == 8 ? ir.f64 : p.accumulate == Type::i32 || t.dot > 1 ? ir.i32 : ir.f32;
  const int64_t chunk = std::min(count, 16 / t.element); // chunk_m() or chunk_n()
  Value base = ir.offset(lane_base, slot);
  Values out;
  for (int64_t i = 0; i < count / chunk; ++i) {
    Value at = ir.offset(base, (k * side.row + i * lanes * chunk) * t.element);
    llvm::append_range(out, ir.unpack(ir.load(ir.lanes(chunk, type), at, chunk * t.element)));
  }
  return out;
}

void SimtBlock::read_fragments(State& s, Value slot, int64_t k) {
  s.fragment_a = fragment(t.a, lane_a_, t.lanes_m, t.tm, slot, k);
  s.fragment_b.clear();
  for (int64_t w = 0; w < t.weights; ++w)
    llvm::append_range(s.fragment_b, fragment(t.b, ir.offset(lane_b_, w * t.weight_bytes()), t.lanes_n,
                                              t.thread_columns(), slot, k));
}

Values SimtBlock::multiply(const Values& a, const Values& b, Values sums) {
  for (int64_t i = 0; i < t.tm; ++i)
    for (int64_t j = 0; j < t.tn; ++j) {
      Value& sum = sums[size_t(i * t.tn + j)];
      Value x = a[size_t(i)], y = b[size_t(j)];
      if (t.dot == 4)
        sum = ir.dot4(x, y, sum);
      else if (t.dot == 2)
        sum = amd().dot2(p.a, x, y, sum);
      else if (p.accumulate == Type::i32)
        sum = mlir::arith::AddIOp::create(ir.b, ir.loc, mlir::arith::MulIOp::create(ir.b, ir.loc, x, y), sum);
      else
        sum = ir.multiply_add(x, y, sum);
    }
  return sums;
}

Value SimtBlock::next_slot(Value slot) {
  Value next = ir.add(slot, t.stage_bytes());
  return ir.select(ir.less(next, t.shared_bytes()), next, ir.c(0));
}

Value SimtBlock::previous_slot(Value slot) {
  return ir.select(ir.equal(slot, ir.c(0)), ir.c(t.shared_bytes() - t.stage_bytes()),
                   ir.sub(slot, ir.c(t.stage_bytes())));
}

/// What is left of K from the start of a tile of the split, counted from 0.
Value SimtBlock::remaining(Value tile) { return ir.sub(depth_, ir.mul(tile, t.bk * t.dot)); }

void SimtBlock::copy(const State& s, int64_t from, int64_t to, Value slot, Value remaining) {
  int64_t first = 0;
  for (size_t i = 0; i < loaders_.size(); ++i) {
    const int64_t count = i ? t.b.per_thread : t.a.per_thread;
    const int64_t begin = std::max<int64_t>(0, from - first), end = std::min(count, to - first);
    if (begin < end) loaders_[i]->copy(begin, end, s.from[i], slot, remaining);
    first += count;
  }
}

void SimtBlock::advance(State& s) {
  for (size_t i = 0; i < loaders_.size(); ++i) s.from[i] = loaders_[i]->next(s.from[i]);
}

Values SimtBlock::load(const State& s, Value remaining) {
  Values out;
  for (size_t i = 0; i < loaders_.size(); ++i)
    llvm::append_range(out, loaders_[i]->load(s.from[i], remaining));
  return out;
}

void SimtBlock::put(const Values& loaded, Value slot, Value remaining) {
  mlir::ValueRange rest(loaded);
  for (size_t i = 0; i < loaders_.size(); ++i) {
    const auto count = size_t(i ? t.b.per_thread * t.b.lines : t.a.per_thread * t.a.lines);
    loaders_[i]->store(Values(rest.take_front(count)), slot, remaining);
    rest = rest.drop_front(count);
  }
}

SimtBlock::State SimtBlock::first_state() {
  State s;
  for (const auto& loader : loaders_) s.from.push_back(loader->start(first_k_));
  s.read = ir.c(0);
  if (t.async) {
    for (int64_t stage = 0; stage + 1 < t.stages; ++stage) {
      copy(s, 0, t.a.per_thread + t.weights * t.b.per_thread, ir.c(stage * t.stage_bytes()),
           remaining(ir.c(stage)));
      nv().commit_copies();
      advance(s);
    }
    nv().wait_copies(t.stages - 2);
  } else {
    put(load(s, depth_), s.read, depth_);
    advance(s);
  }
  ir.barrier();
  read_fragments(s, s.read, 0);
  s.sums.assign(size_t(t.tm * t.tn), ir.zero(ir.memory_type(p.accumulate)));
  return s;
}

/// One tile is multiplied while another one is fetched stages - 1 tiles ahead, into the stage that was
/// multiplied last. The last step waits for the next tile and reads its first fragments, so that
/// multiplication does not pause.
SimtBlock::State SimtBlock::asynchronous_tile(State s, Value tile) {
  const int64_t copies = t.a.per_thread + t.weights * t.b.per_thread, steps = t.bk - 1;
  Value following = next_slot(s.read), write = previous_slot(s.read);
  Value left = remaining(ir.add(tile, t.stages - 1));
  for (int64_t k = 0; k < t.bk; ++k) {
    const Values a = s.fragment_a, b = s.fragment_b;
    if (k + 1 == t.bk) {
      nv().commit_copies();
      nv().wait_copies(t.stages - 2);
      ir.barrier();
      read_fragments(s, following, 0);
    } else {
      read_fragments(s, s.read, k + 1);
      copy(s, copies * k / steps, copies * (k + 1) / steps, write, left);
    }
    s.sums = multiply(a, b, s.sums);
  }
  advance(s);
  s.read = following;
  return s;
}

SimtBlock::State SimtBlock::converted_tile(State s, Value tile) {
  Value following = next_slot(s.read), left = remaining(ir.add(tile, 1));
  const Values next = load(s, left);
  for (int64_t k = 0; k < t.bk; ++k) {
    const Values a = s.fragment_a, b = s.fragment_b;
    if (k + 1 == t.bk) {
      put(next, following, left);
      ir.barrier();
      read_fragments(s, following, 0);
    } else {
      read_fragments(s, s.read, k + 1);
    }
    s.sums = multiply(a, b, s.sums);
  }
  advance(s);
  s.read = following;
  return s;
}

std::vector<Fragment> SimtBlock::row_of(const Values& sums, int64_t i, int64_t weight,
                                        const std::vector<Value>& columns) {
  const int64_t cm = t.chunk_m(), cn = t.chunk_n();
  Value row = ir.add(first_m_, i / cm * t.lanes_m * cm + i % cm);
  std::vector<Fragment> out;
  auto first = sums.begin() + i * t.tn + weight * t.thread_columns();
  for (Value column : columns) {
    out.push_back({row, column, Values(first, first + cn)});
    first += cn;
  }
  return out;
}

void SimtBlock::store(const Values& sums, int64_t align_d) {
  const Bounds bounds{row_end_ || sizes_.m.may_leave(t.bm), sizes_.n.may_leave(t.columns()), row_end_};
  std::vector<Value> columns;
  for (int64_t j = 0; j < t.thread_columns(); j += t.chunk_n())
    columns.push_back(ir.add(first_n_, j * t.lanes_n));
  std::unique_ptr<GpuEpilogue> epilogue;
  GpuGate gate(ir, p, args_);
  if (t.splits > 1)
    ir.launch_dependents();
  else
    epilogue = std::make_unique<GpuEpilogue>(ir, GpuGate::rest(p), p.gate ? gate.rest(args_) : args_, entry_,
                                             align_d);
  // Together: 8 accesses, each with two addresses and a condition, of up to 16 values.
  const int64_t rows = std::clamp<int64_t>(std::min<int64_t>(16, 8 * t.width_d) / t.tn, 1, t.tm);
  for (int64_t first = 0; first < t.tm; first += rows) {
    std::vector<Fragment> together[2];
    for (int64_t w = 0; w < t.weights; ++w)
      for (int64_t i = first; i < std::min(t.tm, first + rows); ++i)
        llvm::append_range(together[w], row_of(sums, i, w, columns));
    if (epilogue)
      epilogue->store(p.gate ? gate.products(together[0], together[1]) : together[0], bounds);
    else
      for (int64_t w = 0; w < t.weights; ++w)
        GpuSplitK(p, t.splits).store(ir, args_, split_, entry_, together[w], bounds, w);
  }
}

Value SimtBlock::second_weight(Value b, Value pitch) {
  const SizeValue n = ir.wide(sizes_.n);
  if (t.b.k_major) return ir.offset(b, ir.mul(pitch, n));
  const SizeValue bytes = ir.product(n, t.b.bytes);
  return ir.offset(b, bytes.is_constant() ? ir.constant(bytes.constant()) : bytes.value());
}

void SimtBlock::make_loaders() {
  loaders_.push_back(
      std::make_unique<SimtLoader>(ir, t, t.a, operand("a", t.a), pitch("a", t.a), block_m_, sizes_.m));
  Value b = operand("b", t.b), pitch_b = pitch("b", t.b);
  for (int64_t w = 0; w < t.weights; ++w) {
    SimtSide side = t.b;
    side.offset += w * t.weight_bytes();
    loaders_.push_back(std::make_unique<SimtLoader>(ir, t, side, w == 0 ? b : second_weight(b, pitch_b),
                                                    pitch_b, block_n_, sizes_.n));
  }
}

void SimtBlock::emit(int64_t align_d) {
  if (!p.groups) {
    find_tile();
    return emit_tile(align_d);
  }
  GpuGroups groups(ir, p, args_, t.bm);
  const GpuGroups::Group group = groups.group_one_by_one(ir.divide(ir.block_x(), tiles_n_));
  ir.branch(group.exists, [&] {
    find_tile_in_group(groups, group);
    emit_tile(align_d);
  });
}

/// Splits share the tiles along K evenly. Of a call's K the last ones may have none.
void SimtBlock::find_share() {
  const int64_t tile = t.bk * t.dot;
  const SizeValue tiles_k = ir.tiles(sizes_.k, tile);
  first_k_ = ir.c(0), depth_ = ir.c(sizes_.k), tiles_ = ir.c(tiles_k);
  if (t.splits == 1) return;
  const SizeValue each = ir.tiles(tiles_k, t.splits), depth = ir.product(each, tile);
  first_k_ = ir.mul(split_, depth);
  depth_ = ir.min(ir.c(depth), ir.sub(ir.c(sizes_.k), first_k_));
  tiles_ = ir.min(ir.c(each), ir.sub(ir.c(tiles_k), ir.mul(split_, each)));
}

Values SimtBlock::sum_up() {
  const State first = first_state();
  Values last = ir.rolled_loop(ir.c(0), tiles_, 1, first.pack(), [&](Value tile, mlir::ValueRange carried) {
    State s = first.unpacked(Values(carried));
    return (t.async ? asynchronous_tile(s, tile) : converted_tile(s, tile)).pack();
  });
  return first.unpacked(last).sums;
}

void SimtBlock::emit_tile(int64_t align_d) {
  find_lane();
  find_share();
  make_loaders();
  const auto sum_up = [&] { return this->sum_up(); };
  store(t.any_depth ? ir.sums_of(tiles_, size_t(t.tm * t.tn), ir.memory_type(p.accumulate), sum_up)
                    : sum_up(),
        align_d);
}

} // namespace

Kernel Simt::emit(mlir::ModuleOp module, const Gemm& p, const std::string& arch, const Config& config) const {
  const bool amd = is_amd(arch);
  const SimtTiling t(p, config, arch);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = gpu_target(arch);
  kernel.args = gpu_arguments(p, t.splits > 1);
  kernel.align_a = t.a.width * t.a.bytes, kernel.align_b = t.b.width * t.b.bytes;
  kernel.align_d = t.width_d * size_of(p.d);
  const std::unique_ptr<GpuIr> made = make_gpu_ir(module, kernel.target);
  GpuIr& ir = *made;
  GpuEntry entry;
  entry.name = kernel_symbol, entry.threads = t.threads, entry.min_blocks = t.blocks,
  entry.shared = t.shared_bytes();
  ir.kernel(entry, p, kernel.args,
            [&](const GpuIr::Arguments& args) { SimtBlock(ir, p, t, args).emit(kernel.align_d); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {(p.groups ? GpuGroups::most_tiles(p, t.bm) : t.tiles_m * p.batch) * t.tiles_n, t.splits, 1};
  launch.grid_rules[0] = p.groups
                             ? GpuGroups::grid_rule(p, t.bm, t.columns())
                             : rule_of(p, 1, {{Size::m, t.bm}, {Size::n, t.columns()}, {Size::batch, 1}});
  launch.block = {t.threads, 1, 1};
  if (!amd) launch.shared = t.shared_bytes(); // AMD's is static
  kernel.launches.push_back(launch);
  GpuSplitK(p, t.splits).add_reduce(ir, kernel);
  return kernel;
}

} // namespace deepgen
