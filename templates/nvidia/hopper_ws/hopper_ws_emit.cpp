#include "templates/core/sizes.h"
#include "templates/gpu/gpu_gate.h"
#include "templates/gpu/gpu_split_k.h"
#include "templates/nvidia/hopper_ws/hopper_ws_kernel.h"
#include "templates/nvidia/hopper_ws/hopper_ws_sum.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {

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
    prefetch_maps();
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
  if (t.stream_k) stream.emplace(ir, p, t, arguments, work(), tiles_k, cluster, clusters);
  if (t.waits()) {
    ir.launch_dependents();
    if (t.prefetch) ir.branch(ir.at_least(ir.warpgroup(), 1), [&] { prefetch(); });
    ir.wait_for_predecessor();
  }
  if (!p.groups) return;
  groups.emplace(ir, p, t, arguments, ir.add(memory, t.groups_offset));
  groups->fill();
}

void HopperKernel::emit() {
  start();
  ir.branch(ir.less(ir.warpgroup(), 1), [&] { produce(); }, [&] { consume(); });
}

HopperKernel::Work HopperKernel::locate_piece(Value number, bool sparing) {
  const HopperStreamK::Piece piece = stream->piece(number, sparing);
  Work w = locate(piece.tile);
  w.k_first = piece.k_first, w.k_count = piece.k_count;
  w.k_start = piece.k_start, w.leaves = piece.leaves, w.takes = piece.takes;
  return w;
}

/// Bands of `group` rows of tiles are visited column by column, so that what runs at a time shares rows and
/// columns. Splits and batch entries follow each other.
HopperKernel::Work HopperKernel::locate(Value index) {
  if (groups) return locate_in_group(index);
  Work w;
  Value tile = index;
  if (t.splits * p.batch > 1) {
    const SizeValue tiles = ir.product(clusters_m, clusters_n);
    tile = ir.remainder(index, tiles);
    Value rest = ir.divide(index, tiles);
    if (t.split()) w.split = p.batch > 1 ? ir.remainder(rest, t.splits) : rest;
    if (p.batch > 1) w.entry = ir.divide(rest, t.splits);
  }
  const int64_t group = clusters_m.is_constant() ? std::min(t.group, t.clusters_m) : t.group;
  const SizeValue of_band = ir.product(clusters_n, group);
  Value band = ir.divide(tile, of_band), inside = ir.remainder(tile, of_band);
  Value height = ir.c(group), first = ir.mul(band, group);
  if (group > 1 && clusters_m.may_leave(group)) height = ir.min(ir.sub(ir.c(clusters_m), first), height);
  w.cluster_m = ir.add(first, ir.remainder(inside, height)), w.cluster_n = ir.divide(inside, height);
  Value m = ir.mul(w.cluster_m, t.cluster_m), n = ir.mul(w.cluster_n, t.cluster_n);
  if (rank_m) m = ir.add(m, rank_m);
  if (rank_n) n = ir.add(n, rank_n);
  w.m0 = ir.mul(m, products.bm), w.n0 = ir.mul(n, products.bn);
  w.k_first = w.split ? w.split : rank_k ? rank_k : ir.c(0);
  w.k_count = ir.tiles_in_turn(tiles_k, w.k_first, t.parts());
  return w;
}

/// The same within a group, whose tiles follow those of the group before.
HopperKernel::Work HopperKernel::locate_in_group(Value index) const {
  const HopperGroups::Place place = groups->locate(index);
  Value of_m = t.swap ? ir.c(clusters_m) : place.clusters, of_n = t.swap ? place.clusters : ir.c(clusters_n);
  Value of_band = ir.mul(of_n, t.group), band = ir.divide(place.inside, of_band);
  Value inside = ir.sub(place.inside, ir.mul(band, of_band)), first = ir.mul(band, t.group);
  Value height = ir.min(ir.sub(of_m, first), ir.c(t.group)), column = ir.divide(inside, height);
  Value m = ir.mul(ir.add(first, ir.sub(inside, ir.mul(column, height))), t.cluster_m),
        n = ir.mul(column, t.cluster_n);
  if (rank_m) m = ir.add(m, rank_m);
  if (rank_n) n = ir.add(n, rank_n);
  Work w;
  w.m0 = ir.mul(m, products.bm), w.n0 = ir.mul(n, products.bn);
  Value& rows = t.swap ? w.n0 : w.m0;
  rows = ir.add(rows, place.first_row);
  w.group = place.number, w.row_end = place.end_row;
  w.k_first = ir.c(0);
  w.k_count = ir.tiles_in_turn(tiles_k, w.k_first, t.parts());
  return w;
}

HopperKernel::RingPlace HopperKernel::next(RingPlace at) const {
  Value stage = ir.add(at.stage, 1), wraps = ir.equal(stage, ir.c(t.stages));
  return {ir.select(wraps, ir.c(0), stage), ir.select(wraps, ir.bit_xor(at.parity, 1), at.parity)};
}

/// Of step `i` of a tile.
Value HopperKernel::k_tile(const Work& w, Value i) const {
  if (!stream) return ir.add(w.k_first, ir.mul(i, t.parts()));
  Value at = ir.add(w.k_start, i), wrapped = ir.sub(at, w.k_count);
  return ir.add(w.k_first, ir.select(ir.less(wrapped, 0), at, wrapped));
}

void HopperKernel::consume() {
  if (t.consumer_registers) ir.registers(true, t.consumer_registers);
  Value consumer = ir.sub(ir.warpgroup(), ir.c(1));
  if (once && t.pingpong) return ir.branch(ir.less(consumer, 1), [&] { consume_tile(consumer); });
  if (once) return consume_tile(consumer);
  Value first = first_step(), step = stride(), stages = ir.c(0);
  if (t.pingpong) {
    Value of_first = stream ? stream->count(first) : ir.c(tiles_k);
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
      store(tile, sums);
    Values after = {place.stage, place.parity};
    if (t.pingpong) {
      Value both = ir.c(ir.product(tiles_k, 2));
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

void HopperKernel::consume_tile(Value consumer) {
  const Work w = locate(cluster);
  RingPlace place{ir.c(0), ir.c(0)};
  const Values sums = accumulate(w, consumer, place);
  HopperPlace tile{memory, w.m0, w.n0, w.entry, w.split, consumer, w.group, w.row_end};
  if (!t.staging.reads.empty()) tile.parity = ir.c(0);
  store(tile, sums);
  if (t.stores_tiles()) ir.wait_stores_read(0); // the block's memory is another's when it ends
}

/// Only here does it matter that flags are clear.
void HopperKernel::store_piece(const Work& w, const HopperPlace& place, const Values& sums) {
  if (!t.waits()) ir.wait_for_predecessor();
  ir.branch(
      w.leaves, [&] { stream->leave(sums); },
      [&] {
        const llvm::SmallVector<mlir::Type> types(sums.size(), sums.front().getType());
        store(place, ir.branch(w.takes, types, [&] { return stream->take(sums); }, [&] { return sums; }));
      });
}

void HopperKernel::store(HopperPlace place, const Values& sums) {
  const GpuIr::Arguments arguments = groups ? groups->arguments_of(place.group) : this->arguments;
  if (t.cluster_k > 1) return HopperClusterSum(ir, p, t, arguments, place, rank).emit(sums);
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
  const bool any_k = !tiles_k.is_constant();
  Values carried = {place.stage, place.parity, place.stage},
         none(size_t(t.sums()), mlir::LLVM::UndefOp::create(ir.b, ir.loc, type));
  carried.append(t.promote || any_k ? Values(size_t(t.sums()), ir.zero(type)) : none);
  if (t.pingpong && !once) take_turn(consumer);
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
  if (t.pingpong && !once) pass_turn(consumer);
  place = {out[0], out[1]};
  Values sums = ir.finish_products(mlir::ValueRange(out).drop_front(3));
  release(out[2], any_k ? ir.at_least(w.k_count, 1) : Value());
  if (any_k && !t.staging.reads.empty()) // no step has asked for it
    ir.branch(ir.less(w.k_count, 1), [&] { fetch(w, consumer, w.k_count); });
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

namespace {

/// L2 fetches whole lines. By 256 bytes, which are the next stage's as well, calls that stream weights took 1
/// to 2 % longer (H200).
constexpr int64_t kPromotion = 128;

/// Of the last boxes: where the size has a range, the runtime tells their rows.
TensorMap edge_map(const HopperTile& tile, const Gemm& p, const TensorMap& map) {
  TensorMap edge = map;
  edge.box_rows = tile.edge_rows;
  if (p.ranged(tile.along())) edge.rest_of = tile.along();
  return edge;
}

void describe_maps(const HopperTiling& t, const Gemm& p, Kernel& kernel) {
  for (const HopperTile* tile : {&t.left, &t.right}) {
    const PackedOperand packed = t.pack.place(tile->name());
    kernel.maps.push_back({tile->name(), tile->box_columns, tile->box_rows, 128, kPromotion, packed});
    if (tile->edge_rows) kernel.maps.push_back(edge_map(*tile, p, kernel.maps.back()));
    kernel.args.push_back("map_" + tile->name());
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

Kernel HopperWs::emit(mlir::ModuleOp module, const Gemm& p, const std::string&, const Config& config) const {
  const HopperTiling t(p, config);
  t.check();
  Kernel kernel;
  kernel.problem = p;
  kernel.target = "sm_90a";
  kernel.args = gpu_arguments(p, t.split() || t.stream_k || t.pack.any());
  kernel.align_a = t.align_a, kernel.align_b = t.align_b, kernel.align_d = t.align_d;
  describe_maps(t, p, kernel);
  HopperIr ir(module, kernel.target);
  for (const HopperTile* tile : {&t.left, &t.right})
    if (tile->edge_rows) ir.make_array("map_" + tile->name(), 2);
  GpuEntry entry;
  entry.name = kernel_symbol, entry.threads = t.threads, entry.cluster = {t.cluster(), 1, 1};
  ir.kernel(entry, p, kernel.args,
            [&](const GpuIr::Arguments& arguments) { HopperKernel(ir, p, t, arguments).emit(); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {(p.groups ? HopperGroups::most_work(p, t) : t.work(p)) * t.cluster(), 1, 1};
  launch.grid_rules[0] =
      p.groups ? HopperGroups::grid_rule(p, t)
               : rule_of(p, t.splits * t.cluster(),
                         {{Size::m, t.cluster_rows()}, {Size::n, t.cluster_columns()}, {Size::batch, 1}});
  launch.block = {t.threads, 1, 1};
  launch.cluster = {t.cluster(), 1, 1};
  launch.shared = t.shared;
  launch.persistent = !t.once(p);
  launch.dependent = t.starts_early();
  kernel.workspace = std::max(t.pack.end(), HopperStreamK::workspace(t, t.work(p)));
  std::tie(kernel.workspace_fixed, kernel.workspace_rule) = t.pack.workspace_rule(p);
  if (t.stream_k) kernel.launches.push_back(HopperStreamK::emit_clear(ir, p, t, kernel.args));
  if (t.pack.any())
    kernel.launches.push_back(t.pack.emit(ir, p, kernel.args, t.dependent || t.stream_k, t.prefetch));
  kernel.launches.push_back(launch);
  GpuSplitK(p, t.splits).add_reduce(ir, kernel);
  return kernel;
}

} // namespace deepgen
