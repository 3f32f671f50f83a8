#include "templates/hopper_ws.h"

#include "templates/gpu_gate.h"
#include "templates/gpu_split_k.h"
#include "templates/hopper_ws_groups.h"
#include "templates/hopper_ws_store.h"
#include "templates/hopper_ws_stream.h"
#include "templates/hopper_ws_sum.h"
#include "templates/sizes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {
namespace {

/// One step of a block through the work of the grid. `entry` and `split` are null when there is one.
struct Work {
  Value cluster_m, cluster_n; ///< the cluster's place among those of D or its transpose
  Value m0, n0;               ///< of the block's tile, in rows and columns of D or its transpose
  Value entry, split;
  Value group, row_end;         ///< of rows, and where it ends; null without groups
  Value k_first, k_count;       ///< in tiles of K; split s has the tiles s, s + splits, ...
  Value k_start, leaves, takes; ///< as of HopperStreamK::Piece; null without
};

/// A position in the ring of stages: the stage, and the parity of its round.
struct RingPlace {
  Value stage, parity;
};

class HopperKernel {
public:
  HopperKernel(HopperIr& ir, const Problem& p, const HopperTiling& t, const GpuIr::Arguments& arguments)
      : ir(ir), p(p), t(t), products(t.of_products()), arguments(arguments) {}
  void emit();

private:
  void start();
  void produce();
  Values fill_tile(const Work&, mlir::ValueRange ring);
  void prefetch();
  void prefetch(const HopperTile&, Value first, Value part, const Work&, Value sharer, int64_t sharers);
  void fill_stage(const Work&, Value k_tile, Value address, Value full);
  void load(const HopperTile&, Value first, Value part, Value blocks, Value k, Value entry, Value to,
            Value full);
  void consume();
  Values accumulate(const Work&, Value consumer, RingPlace& place);
  void fetch(const Work&, Value consumer, Value step);
  void release(Value stage, Value also);
  void store_piece(const Work&, const HopperPlace&, const Values& sums);
  void store(HopperPlace, const Values& sums, Value goes_on);
  void take_turn(Value consumer);
  void pass_turn(Value consumer);

  Work locate(Value index);
  Work locate_in_group(Value index) const;
  Work locate_piece(Value number, bool sparing = false);
  // The steps of a block: tiles of clusters, as many apart as run at a time, or its pieces.
  Value first_step() const { return stream ? stream->first() : cluster; }
  Value stride() const { return stream ? ir.c(1) : clusters; }
  Value end() const { return stream ? stream->end() : groups ? groups->work() : ir.c(t.work(p)); }
  Value k_tile(const Work&, Value i) const;
  RingPlace next(RingPlace) const;
  Value full_barrier(Value stage) const { return ir.add(barriers, ir.shift_left(stage, 3)); }
  Value empty_barrier(Value stage) const { return ir.add(full_barrier(stage), 8 * t.stages); }
  Value stage_address(Value stage) const { return ir.add(memory, ir.mul(stage, t.stage_bytes)); }

  HopperIr& ir;
  const Problem& p;
  const HopperTiling& t;
  const HopperTiling products; ///< tiles of D
  const GpuIr::Arguments& arguments;
  Value memory, barriers;       ///< i32 addresses of shared memory
  Value rank;                   ///< in the cluster
  Value rank_m, rank_n, rank_k; ///< in each direction; null without
  std::optional<HopperGroups> groups;
  std::optional<HopperStreamK> stream; ///< then steps of a block are numbers of its pieces
  Value cluster, clusters;             ///< number of this one, and of all that run
};

void HopperKernel::start() {
  memory = ir.address(ir.shared_memory()), barriers = ir.add(memory, t.barriers_offset);
  const int64_t size = t.cluster();
  if (size > 1) {
    rank = ir.block_of_cluster();
    Value rank_mn = rank;
    if (t.cluster_k > 1) rank_mn = ir.divide(rank, t.cluster_k), rank_k = ir.remainder(rank, t.cluster_k);
    if (t.cluster_m > 1) rank_m = ir.divide(rank_mn, t.cluster_n);
    if (t.cluster_n > 1) rank_n = ir.remainder(rank_mn, t.cluster_n);
  }
  cluster = ir.divide(ir.block_x(), size), clusters = ir.divide(ir.grid_x(), size);
  ir.branch(ir.less(ir.thread(), 1), [&] {
    for (int64_t s = 0; s < t.stages; ++s) {
      ir.barrier_init(full_barrier(ir.c(s)), 1);
      ir.barrier_init(empty_barrier(ir.c(s)), (t.pingpong ? 1 : t.consumers) * t.sharing());
    }
    ir.fence_barrier_init();
  });
  HopperStore::initialise(ir, t, memory);
  ir.warp_barrier();
  if (size > 1)
    ir.cluster_arrive(), ir.cluster_wait();
  else
    ir.barrier();
  if (t.stream_k) stream.emplace(ir, p, t, arguments, cluster, clusters);
  if (t.waits()) {
    ir.launch_dependents();
    if (t.prefetch) prefetch();
    ir.wait_for_predecessor();
  }
  if (!p.groups) return;
  groups.emplace(ir, p, t, arguments, ir.add(memory, t.groups_offset));
  groups->fill();
}

void HopperKernel::emit() {
  start();
  ir.branch(ir.less(ir.warpgroup(), 1), [&] { produce(); }, [&] { consume(); });
  if (t.cluster() == 1) return;
  // Nobody leaves while others may still write to its memory or tell its barriers.
  ir.warp_barrier();
  ir.cluster_arrive();
  ir.cluster_wait();
}

Work HopperKernel::locate_piece(Value number, bool sparing) {
  const HopperStreamK::Piece piece = stream->piece(number, sparing);
  Work w = locate(piece.tile);
  w.k_first = piece.k_first, w.k_count = piece.k_count;
  w.k_start = piece.k_start, w.leaves = piece.leaves, w.takes = piece.takes;
  return w;
}

/// Bands of `group` rows of tiles are visited column by column, so that what runs at a time shares rows and
/// columns. Splits and batch entries follow each other.
Work HopperKernel::locate(Value index) {
  if (groups) return locate_in_group(index);
  Work w;
  const int64_t tiles = t.clusters_m * t.clusters_n;
  Value tile = index;
  if (t.splits * p.batch > 1) {
    tile = ir.remainder(index, tiles);
    Value rest = ir.divide(index, tiles);
    if (t.split()) w.split = p.batch > 1 ? ir.remainder(rest, t.splits) : rest;
    if (p.batch > 1) w.entry = ir.divide(rest, t.splits);
  }
  const int64_t group = std::min(t.group, t.clusters_m);
  Value band = ir.divide(tile, group * t.clusters_n), inside = ir.remainder(tile, group * t.clusters_n);
  Value height = ir.c(group), first = ir.mul(band, group);
  if (t.clusters_m % group) height = ir.min(ir.sub(ir.c(t.clusters_m), first), height);
  w.cluster_m = ir.add(first, ir.remainder(inside, height)), w.cluster_n = ir.divide(inside, height);
  Value m = ir.mul(w.cluster_m, t.cluster_m), n = ir.mul(w.cluster_n, t.cluster_n);
  if (rank_m) m = ir.add(m, rank_m);
  if (rank_n) n = ir.add(n, rank_n);
  w.m0 = ir.mul(m, products.bm), w.n0 = ir.mul(n, products.bn);
  w.k_first = w.split ? w.split : rank_k ? rank_k : ir.c(0), w.k_count = ir.c(t.split_tiles);
  if (const int64_t longer = t.tiles_k % t.parts())
    w.k_count = ir.select(ir.less(w.k_first, longer), w.k_count, ir.c(t.split_tiles - 1));
  return w;
}

/// The same within a group, whose tiles follow those of the group before.
Work HopperKernel::locate_in_group(Value index) const {
  const HopperGroups::Place place = groups->locate(index);
  Value clusters_m = t.swap ? ir.c(t.clusters_m) : place.clusters,
        clusters_n = t.swap ? place.clusters : ir.c(t.clusters_n);
  Value of_band = ir.mul(clusters_n, t.group), band = ir.divide(place.inside, of_band);
  Value inside = ir.sub(place.inside, ir.mul(band, of_band)), first = ir.mul(band, t.group);
  Value height = ir.min(ir.sub(clusters_m, first), ir.c(t.group)), column = ir.divide(inside, height);
  Value m = ir.mul(ir.add(first, ir.sub(inside, ir.mul(column, height))), t.cluster_m),
        n = ir.mul(column, t.cluster_n);
  if (rank_m) m = ir.add(m, rank_m);
  if (rank_n) n = ir.add(n, rank_n);
  Work w;
  w.m0 = ir.mul(m, products.bm), w.n0 = ir.mul(n, products.bn);
  Value& rows = t.swap ? w.n0 : w.m0;
  rows = ir.add(rows, place.first_row);
  w.group = place.number, w.row_end = place.end_row;
  w.k_first = ir.c(0), w.k_count = ir.c(t.split_tiles);
  return w;
}

RingPlace HopperKernel::next(RingPlace at) const {
  Value stage = ir.add(at.stage, 1), wraps = ir.equal(stage, ir.c(t.stages));
  return {ir.select(wraps, ir.c(0), stage), ir.select(wraps, ir.bit_xor(at.parity, 1), at.parity)};
}

/// Of step `i` of a tile.
Value HopperKernel::k_tile(const Work& w, Value i) const {
  if (!stream) return ir.add(w.k_first, ir.mul(i, t.parts()));
  Value at = ir.add(w.k_start, i), wrapped = ir.sub(at, w.k_count);
  return ir.add(w.k_first, ir.select(ir.less(wrapped, 0), at, wrapped));
}

/// By one thread; with cluster_k its whole warpgroup comes along, to meet the consumers.
void HopperKernel::produce() {
  if (t.producer_registers) ir.registers(false, t.producer_registers);
  auto walk = [&](const auto& body) {
    ir.rolled_loop(first_step(), end(), stride(), {ir.c(0), ir.c(0)}, body);
  };
  auto fill = [&](Value index, mlir::ValueRange ring) {
    return fill_tile(stream ? locate_piece(index, true) : locate(index), ring);
  };
  if (t.cluster_k == 1)
    return ir.branch(ir.less(ir.warp(), 1), [&] { ir.branch(ir.elect(), [&] { walk(fill); }); });
  Value chosen = ir.both(ir.less(ir.warp(), 1), ir.elect());
  walk([&](Value index, mlir::ValueRange ring) {
    const Values after =
        ir.branch(chosen, ring.getTypes(), [&] { return fill(index, ring); }, [&] { return Values(ring); });
    HopperClusterSum::meet(ir, ir.less(ir.add(index, stride()), end()));
    return after;
  });
}

/// All stages of a tile, from the given place of the ring on; the place behind them.
Values HopperKernel::fill_tile(const Work& w, mlir::ValueRange ring) {
  return ir.rolled_loop(ir.c(0), w.k_count, 1, ring, [&](Value i, mlir::ValueRange at) {
    const RingPlace place{at[0], at[1]};
    Value full = full_barrier(place.stage);
    ir.wait(empty_barrier(place.stage), ir.bit_xor(place.parity, 1));
    ir.arrive_expecting(full, t.stage_bytes);
    fill_stage(w, k_tile(w, i), stage_address(place.stage), full);
    const RingPlace after = next(place);
    return Values{after.stage, after.parity};
  });
}

/// Asks for the first stages before the predecessor has ended, whose last blocks leave memory idle. It may
/// still write what is read here: that is brought into L2 alone.
void HopperKernel::prefetch() {
  const Work w = stream ? locate_piece(stream->first()) : locate(cluster);
  prefetch(t.left, w.m0, rank_n, w, w.cluster_n, t.clusters_n);
  prefetch(t.right, w.n0, rank_m, w, w.cluster_m, t.clusters_m);
}

/// By all threads, a line each: TMA would be busy with them when the copies come. Clusters that read the same
/// lines ask for a part of them each.
void HopperKernel::prefetch(const HopperTile& tile, Value first, Value part, const Work& w, Value sharer,
                            int64_t sharers) {
  if (t.pack.place(tile.name).ld) return; // the predecessor is still packing
  const bool a = tile.name == "a";
  const int64_t size = size_of(tile.type), rows = tile.rows / tile.share, piece = rows / tile.pieces;
  const int64_t extent = a ? p.m : p.n * t.weights,
                across = tile.k_major ? rows : rows / tile.box_columns * t.bk_slice;
  const int64_t of_stage = t.slices * across;
  if (tile.share > 1) first = ir.add(first, ir.mul(part, piece));
  Value base = arguments.at(tile.name), ld = arguments.at("ld" + tile.name);
  if (p.batch > 1)
    base = ir.offset(base, ir.mul(ir.mul(ir.to_i64(w.entry), arguments.at("stride_" + tile.name)), size));
  Value stages = ir.min(w.k_count, ir.c(t.stages));
  Value begin = ir.add(ir.thread(), ir.mul(sharer, t.threads));
  ir.rolled_loop(begin, ir.mul(stages, of_stage), t.threads * sharers, [&](Value line) {
    Value stage = ir.divide(line, of_stage), in_stage = ir.remainder(line, of_stage);
    Value k = ir.mul(ir.add(w.k_first, ir.mul(stage, t.parts())), t.bk);
    if (t.slices > 1) k = ir.add(k, ir.mul(ir.divide(in_stage, across), t.bk_slice));
    Value at = ir.remainder(in_stage, across), row = at;
    if (!tile.k_major)
      k = ir.add(k, ir.remainder(at, t.bk_slice)), row = ir.mul(ir.divide(at, t.bk_slice), tile.box_columns);
    Value along = ir.add(first, row);
    if (tile.pieces > 1) {
      Value number = ir.divide(row, piece), in_piece = ir.remainder(row, piece);
      along = ir.add(ir.add(first, in_piece), ir.add(ir.mul(ir.divide(number, 2), tile.rows / tile.pieces),
                                                     ir.mul(ir.remainder(number, 2), p.n)));
    }
    Value outer = tile.k_major ? along : k, inner = tile.k_major ? k : along;
    Value inside = ir.both(ir.less(along, extent), ir.less(k, p.k));
    ir.branch(inside, [&] {
      ir.prefetch(ir.offset(base, ir.mul(ir.add(ir.mul(ir.to_i64(outer), ld), ir.to_i64(inner)), size)));
    });
  });
}

/// Each block of a cluster loads its part of what it shares with others, and sends it to them and itself.
void HopperKernel::fill_stage(const Work& w, Value k_tile, Value to, Value full) {
  auto mask = [&](bool left) -> Value {
    // Blocks are numbered along K first, then along N. The left operand is shared by those of one m, the
    // right one by those of one n.
    const int64_t blocks = left ? t.cluster_n : t.cluster_m,
                  step = left ? t.cluster_k : t.cluster_k * t.cluster_n;
    if (blocks == 1) return nullptr;
    int64_t bits = 0;
    for (int64_t i = 0; i < blocks; ++i) bits |= int64_t(1) << (i * step);
    Value first = rank_k;
    if (Value other = left ? rank_m : rank_n) {
      other = ir.mul(other, left ? t.cluster_k * t.cluster_n : t.cluster_k);
      first = first ? ir.add(first, other) : other;
    }
    return ir.to_i16(first ? ir.shift_left(ir.c(bits), first) : ir.c(bits));
  };
  Value left_blocks = mask(true), right_blocks = mask(false);
  auto matrix = [&](const HopperTile& tile) { return tile.name == "b" && w.group ? w.group : w.entry; };
  for (int64_t s = 0; s < t.slices; ++s) {
    Value k = ir.add(ir.mul(k_tile, t.bk), s * t.bk_slice);
    load(t.left, w.m0, rank_n, left_blocks, k, matrix(t.left), ir.add(to, s * t.left.bytes), full);
    load(t.right, w.n0, rank_m, right_blocks, k, matrix(t.right),
         ir.add(to, t.slices * t.left.bytes + s * t.right.bytes), full);
  }
}

void HopperKernel::load(const HopperTile& tile, Value first, Value part, Value blocks, Value k, Value entry,
                        Value to, Value full) {
  const int64_t rows = tile.rows / tile.pieces, bytes = tile.bytes / tile.pieces;
  if (tile.share > 1)
    first = ir.add(first, ir.mul(part, rows / tile.share)), to = ir.add(to, ir.mul(part, bytes / tile.share));
  for (int64_t piece = 0; piece < tile.pieces; ++piece) {
    Value begin = first, at_piece = ir.add(to, piece * bytes);
    if (tile.pieces > 1) begin = ir.add(first, piece / 2 * rows + piece % 2 * p.n);
    for (int64_t i = 0; i < tile.copies; ++i) {
      Value along = ir.add(begin, i * tile.box_columns); // several copies: columns of memory lie along M or N
      Values at = tile.k_major ? Values{k, begin} : Values{along, k};
      if (entry) at.push_back(entry);
      ir.load_tile(arguments.at("map_" + tile.name), ir.add(at_piece, i * tile.slice_bytes), full, at,
                   blocks);
    }
  }
}

void HopperKernel::consume() {
  if (t.consumer_registers) ir.registers(true, t.consumer_registers);
  Value consumer = ir.sub(ir.warpgroup(), ir.c(1));
  Value first = first_step(), step = stride(), stages = ir.c(0);
  if (t.pingpong) {
    Value of_first = stream ? stream->count(first) : ir.c(t.tiles_k);
    first = ir.add(first, ir.mul(consumer, step)), step = ir.add(step, step);
    stages = ir.mul(consumer, of_first);
    ir.branch(ir.equal(consumer, ir.c(1)), [&] { pass_turn(consumer); });
  }
  // Carried: the place in the ring, or with pingpong how many stages both consumers took before.
  // Where the epilogue reads what TMA brings, also the parity of the tile.
  const bool counts = !t.staging.reads.empty();
  Values carried = t.pingpong ? Values{stages} : Values{ir.c(0), ir.c(0)};
  if (counts) carried.push_back(ir.c(0));
  ir.rolled_loop(first, end(), step, carried, [&](Value index, mlir::ValueRange before) {
    const Work w = stream ? locate_piece(index) : locate(index);
    RingPlace place;
    if (t.pingpong) {
      Value round = ir.divide(before[0], t.stages);
      place = {ir.sub(before[0], ir.mul(round, t.stages)), ir.bit_and(round, 1)};
    } else {
      place = {before[0], before[1]};
    }
    const Values sums = accumulate(w, consumer, place);
    HopperPlace tile{memory, w.m0, w.n0, w.entry, w.split, consumer, w.group, w.row_end};
    if (counts) tile.parity = before.back();
    if (stream)
      store_piece(w, tile, sums);
    else
      store(tile, sums, ir.less(ir.add(index, step), end()));
    Values after = {place.stage, place.parity};
    if (t.pingpong) {
      Value both = ir.c(2 * t.tiles_k);
      if (stream)
        both = ir.add(w.k_count, stream->count(ir.add(index, 1))); // the other consumer's is the next
      after = {ir.add(before[0], both)};
    }
    if (counts) {
      Value other = ir.bit_xor(before.back(), 1);
      after.push_back(stream ? ir.select(w.leaves, before.back(), other) : other);
    }
    return after;
  });
  if (t.stores_tiles()) ir.wait_stores_read(0); // the block's memory is another's when it ends
}

/// Only here does it matter that flags are clear.
void HopperKernel::store_piece(const Work& w, const HopperPlace& place, const Values& sums) {
  if (!t.waits()) ir.wait_for_predecessor();
  ir.branch(
      w.leaves, [&] { stream->leave(sums); },
      [&] {
        const llvm::SmallVector<mlir::Type> types(sums.size(), sums.front().getType());
        store(place,
              ir.branch(w.takes, types, [&] { return stream->take(sums); }, [&] { return sums; }), nullptr);
      });
}

void HopperKernel::store(HopperPlace place, const Values& sums, Value goes_on) {
  const GpuIr::Arguments arguments = groups ? groups->arguments_of(place.group) : this->arguments;
  if (t.cluster_k > 1) return HopperClusterSum(ir, p, t, arguments, place, rank).emit(sums, goes_on);
  if (!p.gate) return HopperStore(ir, p, t, arguments, place, mlir::ValueRange(sums)).emit();
  const std::vector<Values> of_weight = t.by_weight(sums);
  if (t.split()) {
    for (; place.weight < 2; ++place.weight)
      HopperStore(ir, p, products, arguments, place, mlir::ValueRange(of_weight[size_t(place.weight)]))
          .emit();
    return;
  }
  const GpuGate gate(ir, p, arguments);
  HopperStore(ir, GpuGate::rest(p), products, gate.rest(arguments), place, {gate, of_weight[0], of_weight[1]})
      .emit();
}

/// Only one consumer multiplies at a time, in turn: otherwise the second could wait for a phase that is two
/// rounds away.
void HopperKernel::take_turn(Value consumer) { ir.named_barrier(ir.add(consumer, 8), 256); }
void HopperKernel::pass_turn(Value consumer) {
  ir.branch(
      ir.equal(consumer, ir.c(0)), [&] { ir.named_barrier_arrive(9, 256); },
      [&] { ir.named_barrier_arrive(8, 256); });
}

/// The main loop: the products of one stage are in flight while the next one's start; then the stage before
/// is released.
Values HopperKernel::accumulate(const Work& w, Value consumer, RingPlace& place) {
  const int64_t rows_bytes = t.pingpong ? 0 : t.left.rows64_bytes() * t.m_tiles();
  mlir::Type type = ir.memory_type(p.accumulate);
  Values carried = {place.stage, place.parity, place.stage},
         none(size_t(t.sums()), mlir::LLVM::UndefOp::create(ir.b, ir.loc, type));
  carried.append(t.promote ? Values(size_t(t.sums()), ir.zero(type)) : none);
  if (t.pingpong) take_turn(consumer);
  Values out = ir.rolled_loop(ir.c(0), w.k_count, 1, carried, [&](Value i, mlir::ValueRange before) {
    const RingPlace at{before[0], before[1]};
    const mlir::ValueRange total = before.drop_front(3);
    Values sums = t.promote ? none : Values(total);
    ir.wait(full_barrier(at.stage), at.parity);
    Value stage = stage_address(at.stage);
    for (int64_t s = 0; s < t.slices; ++s) {
      Value left = ir.add(stage, s * t.left.bytes);
      if (rows_bytes) left = ir.add(left, ir.mul(consumer, rows_bytes));
      Value right = ir.add(stage, t.slices * t.left.bytes + s * t.right.bytes);
      sums = ir.multiply_tiles(t.mma, t.left.operand(left), t.right.operand(right), t.left.rows64_bytes(),
                               s           ? ir.c(1)
                               : t.promote ? ir.c(0)
                                           : i,
                               sums);
    }
    if (t.promote) {
      sums = ir.finish_products(sums);
      for (size_t j = 0; j < sums.size(); ++j) sums[j] = ir.addf(total[j], sums[j]);
    } else {
      ir.wait_products(t.slices);
    }
    fetch(w, consumer, i);
    release(before[2], ir.at_least(i, 1));
    const RingPlace after = next(at);
    Values next_carried = {after.stage, after.parity, at.stage};
    next_carried.append(sums);
    return next_carried;
  });
  if (t.pingpong) pass_turn(consumer);
  place = {out[0], out[1]};
  Values sums = ir.finish_products(mlir::ValueRange(out).drop_front(3));
  release(out[2], nullptr);
  return sums;
}

/// What the epilogue reads is asked for while the first products of a tile are on their way: they hide the
/// wait for buffers, out of which the tile before is still stored.
void HopperKernel::fetch(const Work& w, Value consumer, Value step) {
  if (t.staging.reads.empty()) return;
  Value stores = ir.less(step, 1);
  if (stream) stores = ir.both(stores, ir.equal(w.leaves, ir.c(ir.i1, 0)));
  ir.branch(stores, [&] {
    // Nothing of it is to be kept in registers during the main loop.
    HopperPlace place{ir.opaque(memory), ir.opaque(w.m0), ir.opaque(w.n0), w.entry,
                      w.split,           consumer,        w.group,         w.row_end};
    HopperStore(ir, GpuGate::rest(p), products, arguments, place, mlir::ValueRange()).fetch();
  });
}

/// Tells the producers of all blocks of the cluster that this warpgroup has read the stage; `also`: if this
/// holds.
void HopperKernel::release(Value stage, Value also) {
  Value thread = ir.bit_and(ir.thread(), 127), chosen = ir.less(thread, t.sharing());
  if (also) chosen = ir.both(chosen, also);
  ir.branch(chosen, [&] {
    if (t.sharing() > 1)
      ir.arrive_at_block(empty_barrier(stage), rank_k ? ir.add(ir.mul(thread, t.cluster_k), rank_k) : thread);
    else
      ir.arrive(empty_barrier(stage));
  });
}

/// L2 fetches whole lines. By 256 bytes, which are the next stage's as well, calls that stream weights took 1
/// to 2 % longer (H200).
constexpr int64_t kPromotion = 128;

void describe_maps(const HopperTiling& t, Kernel& kernel) {
  for (const HopperTile* tile : {&t.left, &t.right}) {
    const PackedOperand packed = t.pack.place(tile->name);
    kernel.maps.push_back({tile->name, tile->box_columns, tile->box_rows, 128, kPromotion, packed});
    kernel.args.push_back("map_" + tile->name);
  }
  if (!t.stores_tiles()) return;
  kernel.maps.push_back({"d", t.staging.columns, t.staging.rows, t.staging.swizzle, 0, {}});
  kernel.args.push_back("map_d");
  if (t.staging.reads.empty()) return;
  kernel.maps.push_back(
      {t.staging.reads, t.staging.columns, t.staging.rows, t.staging.swizzle, kPromotion, {}});
  kernel.args.push_back("map_" + t.staging.reads);
}

} // namespace

Kernel HopperWs::emit(mlir::ModuleOp module, const Problem& p, const std::string&,
                      const Config& config) const {
  const HopperTiling t(p, config);
  t.check();
  Kernel kernel;
  kernel.problem = p;
  kernel.target = "sm_90a";
  kernel.args = gpu_arguments(p, t.split() || t.stream_k || t.pack.any());
  kernel.align_a = t.align_a, kernel.align_b = t.align_b, kernel.align_d = t.align_d;
  describe_maps(t, kernel);
  HopperIr ir(module, kernel.target);
  GpuEntry entry;
  entry.name = kernel_symbol, entry.threads = t.threads, entry.cluster = {t.cluster(), 1, 1};
  ir.kernel(entry, p, kernel.args,
            [&](const GpuIr::Arguments& arguments) { HopperKernel(ir, p, t, arguments).emit(); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {(p.groups ? HopperGroups::most_work(p, t) : t.work(p)) * t.cluster(), 1, 1};
  launch.block = {t.threads, 1, 1};
  launch.cluster = {t.cluster(), 1, 1};
  launch.shared = t.shared;
  launch.persistent = true;
  launch.dependent = t.starts_early();
  kernel.workspace = std::max(t.pack.end(), HopperStreamK::workspace(t, t.work(p)));
  if (t.stream_k) kernel.launches.push_back(HopperStreamK::emit_clear(ir, p, t, kernel.args));
  if (t.pack.any())
    kernel.launches.push_back(t.pack.emit(ir, p, kernel.args, t.dependent || t.stream_k, t.prefetch));
  kernel.launches.push_back(launch);
  GpuSplitK(p, t.splits).add_reduce(ir, kernel);
  return kernel;
}

} // namespace deepgen
