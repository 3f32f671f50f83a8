#include "templates/nvidia/hopper_ws/hopper_ws_stream.h"

#include "templates/core/sizes.h"
#include "templates/ir/hopper_ir.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr int64_t kMostBlocks = 144; ///< that share: one on each multiprocessor of the largest chip
constexpr int64_t kLanes = 4;        ///< sums of one access
constexpr int64_t kFlagBytes = 4;
constexpr int64_t kClearThreads = 32; ///< beside which a block that takes most registers fits

/// Threads that have a tile's sums.
int64_t owners(const HopperTiling& t) { return 128 * (t.pingpong ? 1 : t.consumers); }
int64_t blocks(const HopperTiling& t, int64_t work) { return std::min(work * t.cluster(), kMostBlocks); }
int64_t flag_bytes(const HopperTiling& t, int64_t work) {
  return round_up(blocks(t, work) * owners(t) / 32 * kFlagBytes, 256);
}
int64_t sum_bytes(const HopperTiling& t) { return owners(t) * t.sums() * 4; }

} // namespace

int64_t HopperStreamK::least_part(int64_t tiles_k) { return std::clamp<int64_t>(tiles_k / 8, 1, 4); }

int64_t HopperStreamK::workspace(const HopperTiling& t, int64_t work) {
  return t.stream_k ? flag_bytes(t, work) + blocks(t, work) * sum_bytes(t) : 0;
}

HopperStreamK::HopperStreamK(HopperIr& ir, const Gemm& p, const HopperTiling& t,
                             const GpuIr::Arguments& arguments, const SizeValue& work,
                             const SizeValue& tiles_k, Value cluster, Value clusters)
    : ir(ir), p(p), t(t), arguments(arguments), tiles_k(tiles_k), cluster(cluster), clusters(clusters) {
  Value waves = ir.divide(ir.c(work), clusters), rest = ir.sub(ir.c(work), ir.mul(waves, clusters));
  // With less than a tile for each, more than two would share one. More blocks than there is workspace for
  // share nothing.
  Value shares = ir.both(ir.both(ir.at_least(rest, 1), ir.at_least(waves, 1)),
                         ir.less(ir.grid_x(), blocks(t, t.work(p)) + 1));
  if (!tiles_k.is_constant()) shares = ir.both(shares, ir.at_least(tiles_k.value(), kFewestTilesK));
  Value alone = ir.add(waves, ir.select(ir.less(cluster, rest), ir.c(1), ir.c(0)));
  whole_waves = ir.select(shares, ir.sub(waves, ir.c(1)), alone);
  Value shared_out = ir.select(shares, ir.mul(ir.add(rest, clusters), tiles_k), ir.c(0));
  base = ir.mul(whole_waves, clusters);
  each = ir.divide(shared_out, clusters), longer = ir.sub(shared_out, ir.mul(each, clusters));
  begin_ = boundary(cluster), end_of_share_ = boundary(ir.add(cluster, 1));
  Value takes = ir.at_least(begin_.k, 1);
  first_ = ir.select(ir.at_least(end_of_share_.k, 1), ir.c(0), ir.c(1));
  // Tiles of its own begin behind the one that it shares with the cluster before.
  begin_.tile = ir.add(begin_.tile, ir.select(takes, ir.c(1), ir.c(0)));
  Value own = ir.add(whole_waves, ir.sub(end_of_share_.tile, begin_.tile));
  end_ = ir.add(ir.add(own, 1), ir.select(takes, ir.c(1), ir.c(0)));
  // It takes behind one of its own: the cluster before has left its sums by then, and not all add them at the
  // same time.
  leaving_ = ir.c(0);
  if (!t.whole_first) {
    taking_ = ir.select(takes, ir.add(ir.min(own, ir.c(1)), 1), end_);
    return;
  }
  leaving_ = ir.select(ir.at_least(end_of_share_.k, 1), whole_waves, leaving_);
  Value shared = ir.sub(own, whole_waves);
  taking_ = ir.select(takes, ir.add(whole_waves, ir.add(ir.min(shared, ir.c(1)), 1)), end_);
}

/// Not so near to the edge of a tile that a part is not worth adding.
HopperStreamK::Place HopperStreamK::boundary(Value number) const {
  Value at = ir.add(ir.mul(number, each), ir.min(number, longer));
  if (!tiles_k.is_constant()) return boundary_of_call(at);
  const int64_t least = least_part(t.tiles_k);
  Value tile = ir.divide(at, t.tiles_k), k = ir.sub(at, ir.mul(tile, t.tiles_k));
  Value late = ir.at_least(k, t.tiles_k - least + 1);
  k = ir.select(ir.less(k, least), ir.c(0), k);
  return {ir.select(late, ir.add(tile, 1), tile), ir.select(late, ir.c(0), k)};
}

/// The same of a call's K, that with nothing shared out may be too short for parts.
HopperStreamK::Place HopperStreamK::boundary_of_call(Value at) const {
  Value all = ir.max(tiles_k.value(), ir.c(kFewestTilesK)), least = ir.min(ir.divide(all, 8), ir.c(4));
  Value tile = ir.divide(at, all), k = ir.sub(at, ir.mul(tile, all));
  Value late = ir.less(ir.sub(all, least), k);
  k = ir.select(ir.less(k, least), ir.c(0), k);
  return {ir.select(late, ir.add(tile, 1), tile), ir.select(late, ir.c(0), k)};
}

Value HopperStreamK::count(Value number) const {
  Value count = ir.select(ir.equal(number, taking_), ir.sub(ir.c(tiles_k), begin_.k), ir.c(tiles_k));
  return ir.select(ir.equal(number, leaving_), end_of_share_.k, count);
}

HopperStreamK::Piece HopperStreamK::piece(Value number, bool sparing) const {
  Piece x;
  auto kept = [&](Value v) { return sparing ? ir.opaque(v) : v; };
  const Place begin{kept(begin_.tile), kept(begin_.k)}, end{kept(end_of_share_.tile), kept(end_of_share_.k)};
  x.leaves = ir.equal(number, leaving_), x.takes = ir.equal(number, taking_);
  Value own = ir.sub(number, ir.select(ir.less(taking_, number), ir.c(2), ir.c(1)));
  if (t.whole_first) own = ir.add(own, ir.select(ir.less(number, leaving_), ir.c(1), ir.c(0)));
  Value alone = ir.add(cluster, ir.mul(own, clusters));
  Value shared = ir.add(base, ir.add(begin.tile, ir.sub(own, whole_waves)));
  x.tile = ir.select(ir.less(own, whole_waves), alone, shared);
  x.tile = ir.select(x.takes, ir.add(base, ir.sub(begin.tile, ir.c(1))), x.tile);
  x.tile = ir.select(x.leaves, ir.add(base, end.tile), x.tile);
  x.k_first = ir.select(x.takes, begin.k, ir.c(0)), x.k_count = count(number);
  // All blocks are at the same K at a time, as without parts: what several read comes from memory once.
  Value ahead = ir.sub(end.k, begin.k), behind = ir.less(ahead, 0);
  Value later = ir.select(
      behind, tiles_k.is_constant() ? ir.add(ahead, t.tiles_k) : ir.add(ahead, tiles_k.value()), ahead);
  x.k_start = ir.select(ir.less(taking_, number), later, end.k);
  x.k_start = ir.select(x.takes, ir.select(behind, ir.c(0), ahead), x.k_start);
  x.k_start = ir.select(t.whole_first ? ir.less(number, ir.add(leaving_, 1)) : x.leaves, ir.c(0), x.k_start);
  return x;
}

Value HopperStreamK::flag(Value block) const {
  const int64_t warps = owners(t) / 32;
  Value warp = ir.shift_right_bits(ir.sub(ir.thread(), ir.c(128)), 5); // the producer's warpgroup comes first
  if (t.pingpong) warp = ir.bit_and(warp, 3);
  return ir.offset(arguments.at("workspace"), ir.shift_left(ir.add(ir.mul(block, warps), warp), 2));
}

Value HopperStreamK::sums_at(Value block) const {
  Value thread = ir.sub(ir.thread(), ir.c(128));
  if (t.pingpong) thread = ir.bit_and(thread, 127);
  Value base = ir.offset(arguments.at("workspace"), flag_bytes(t, t.work(p)));
  return ir.offset(ir.offset(base, ir.mul(ir.to_i64(block), sum_bytes(t))), ir.mul(thread, 4 * kLanes));
}

void HopperStreamK::leave(const Values& sums) const {
  Value to = sums_at(ir.block_x());
  for (size_t j = 0; j < sums.size(); j += kLanes)
    ir.store(ir.pack(mlir::ValueRange(sums).slice(j, kLanes)), ir.offset(to, int64_t(j) * 4 * owners(t)),
             4 * kLanes);
  ir.warp_barrier();
  ir.branch(ir.elect(), [&] { ir.set_flag(flag(ir.block_x())); });
}

/// The block of the same rank in the cluster before.
Values HopperStreamK::take(const Values& sums) const {
  Value block = ir.sub(ir.block_x(), ir.c(t.cluster()));
  ir.await_flag(flag(block));
  Value from = sums_at(block);
  mlir::Type vector = ir.lanes(kLanes, ir.memory_type(p.accumulate));
  Values out;
  for (size_t j = 0; j < sums.size(); j += kLanes) {
    Value left = ir.load(vector, ir.offset(from, int64_t(j) * 4 * owners(t)), 4 * kLanes);
    for (const Value& x : ir.unpack(left)) out.push_back(ir.add_sums(x, sums[out.size()]));
  }
  return out;
}

Launch HopperStreamK::emit_clear(GpuIr& ir, const Gemm& p, const HopperTiling& t,
                                 const std::vector<std::string>& names) {
  Launch launch;
  launch.entry = "deepgen_clear";
  launch.block[0] = kClearThreads;
  launch.dependent = t.dependent;
  GpuEntry entry;
  entry.name = launch.entry, entry.threads = kClearThreads;
  ir.kernel(entry, p, names, [&](const GpuIr::Arguments& values) {
    ir.launch_dependents();
    if (t.dependent) ir.wait_for_predecessor(); // whose workspace it may be
    const int64_t bytes = flag_bytes(t, t.work(p));
    ir.rolled_loop(ir.shift_left(ir.thread(), 4), ir.c(bytes), 16 * kClearThreads, [&](Value at) {
      ir.store(ir.zero(ir.lanes(4, ir.i32)), ir.offset(values.at("workspace"), at), 16);
    });
  });
  return launch;
}

} // namespace deepgen
