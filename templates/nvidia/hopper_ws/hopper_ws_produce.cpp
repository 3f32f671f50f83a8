// The warpgroup that fills the ring of stages, by TMA.
#include "templates/nvidia/hopper_ws/hopper_ws_config.h"
#include "templates/nvidia/hopper_ws/hopper_ws_kernel.h"
#include "templates/nvidia/hopper_ws/hopper_ws_sum.h"

namespace deepgen {

using hopper::kSliceBytes;
using hopper::kWarpgroup;

/// By one thread; with cluster_k its whole warpgroup comes along, to meet the consumers.
void HopperKernel::produce() {
  if (t.producer_registers) ir.registers(false, t.producer_registers);
  auto walk = [&](const auto& body) {
    if (once) return body(cluster, Values{ir.c(0), ir.c(0)});
    return ir.rolled_loop(first_step(), end(), stride(), {ir.c(0), ir.c(0)}, body);
  };
  auto fill = [&](Value index, mlir::ValueRange ring) {
    return fill_tile(stream ? locate_piece(index, true) : locate(index), ring);
  };
  if (t.cluster_k == 1)
    return ir.branch(ir.less(ir.warp(), 1), [&] {
      ir.branch(ir.elect(), [&] {
        const Values ring = walk(fill);
        if (t.cluster() > 1) drain({ring[0], ring[1]});
      });
    });
  Value chosen = ir.both(ir.less(ir.warp(), 1), ir.elect());
  walk([&](Value index, mlir::ValueRange ring) {
    const Values after =
        ir.branch(chosen, ring.getTypes(), [&] { return fill(index, ring); }, [&] { return Values(ring); });
    HopperClusterSum::meet(ir);
    return after;
  });
}

/// The block stays until all stages are empty: until then others may tell its barriers that they have read
/// what it sent them.
void HopperKernel::drain(RingPlace place) {
  ir.rolled_loop(ir.c(0), ir.c(t.stages), 1, {place.stage, place.parity}, [&](Value, mlir::ValueRange at) {
    ir.wait(empty_barrier(at[0]), ir.bit_xor(at[1], 1));
    const RingPlace after = next({at[0], at[1]});
    return Values{after.stage, after.parity};
  });
}

/// All stages of a tile, from the given place of the ring on; the place behind them.
Values HopperKernel::fill_tile(const Work& w, mlir::ValueRange ring) {
  const Edges edges = edges_of(w);
  return ir.rolled_loop(ir.c(0), w.k_count, 1, ring, [&](Value i, mlir::ValueRange at) {
    const RingPlace place{at[0], at[1]};
    Value full = full_barrier(place.stage);
    ir.wait(empty_barrier(place.stage), ir.bit_xor(place.parity, 1));
    if (edges.bytes)
      ir.arrive_expecting(full, edges.bytes);
    else
      ir.arrive_expecting(full, t.stage_bytes);
    fill_stage(w, edges, k_tile(w, i), stage_address(place.stage), full);
    const RingPlace after = next(place);
    return Values{after.stage, after.parity};
  });
}

/// Barriers of all blocks that share a tile count the same bytes: the copies of each go to all.
HopperKernel::Edges HopperKernel::edges_of(const Work& w) const {
  Edges edges;
  const auto add = [&](const HopperTile& tile, Value first, Value part, std::optional<HopperEdge>& edge) {
    if (!tile.edge_rows) return;
    edge.emplace(ir, tile, arguments.at("map_" + tile.name()), first, part, tile.is_a() ? sizes.m : sizes.n);
    edges.bytes = edges.bytes ? ir.add(edges.bytes, edge->rows()) : edge->rows();
  };
  add(t.left, w.m0, rank_n, edges.left);
  add(t.right, w.n0, rank_m, edges.right);
  if (!edges.bytes) return edges;
  const int64_t others = (edges.left ? 0 : t.left.bytes) + (edges.right ? 0 : t.right.bytes);
  edges.bytes = ir.add(ir.mul(edges.bytes, t.slices * kSliceBytes), t.slices * others);
  return edges;
}

/// By one thread, before anything else: the first copies, and the first store, find the maps there. Of a K of
/// zero there are none of A and B.
void HopperKernel::prefetch_maps() {
  const auto operands = [&] {
    for (const HopperTile* tile : {&t.left, &t.right}) {
      ir.prefetch_map(arguments.at("map_" + tile->name()));
      if (tile->edge_rows) ir.prefetch_map(HopperEdge::last_map(ir, arguments.at("map_" + tile->name())));
    }
  };
  if (sizes.k.is_constant())
    operands();
  else
    ir.branch(ir.at_least(sizes.k.value(), 1), operands);
  if (t.stores_tiles()) ir.prefetch_map(arguments.at("map_d"));
  if (!t.staging.reads.empty()) ir.prefetch_map(arguments.at("map_" + t.staging.reads));
}

/// Asks for the first stages before the predecessor has ended, whose last blocks leave memory idle. It may
/// still write what is read here: that is brought into L2 alone. By the consumers, who have nothing to do
/// yet: where no predecessor is awaited, the producer's copies start beside it.
void HopperKernel::prefetch() {
  const Work w = stream ? locate_piece(stream->first()) : locate(cluster);
  prefetch(t.left, w.m0, rank_n, w, w.cluster_n, clusters_n);
  prefetch(t.right, w.n0, rank_m, w, w.cluster_m, clusters_m);
}

/// By all their threads, a line each: TMA would be busy with them when the copies come. Clusters that read
/// the same lines ask for a part of them each.
void HopperKernel::prefetch(const HopperTile& tile, Value first, Value part, const Work& w, Value sharer,
                            const SizeValue& sharers) {
  if (t.pack.place(tile.name()).ld) return; // the predecessor is still packing
  const bool a = tile.is_a();
  const int64_t size = size_of(tile.type), rows = tile.rows / tile.share, piece = rows / tile.pieces;
  const SizeValue extent = a ? sizes.m : ir.product(sizes.n, t.weights);
  const int64_t across = tile.k_major ? rows : rows / tile.box_columns * t.bk_slice;
  const int64_t of_stage = t.slices * across;
  if (tile.share > 1) first = ir.add(first, ir.mul(part, piece));
  Value base = arguments.at(tile.name()), ld = arguments.at("ld" + tile.name());
  if (p.batch > 1)
    base = ir.offset(base, ir.mul(ir.mul(ir.to_i64(w.entry), arguments.at("stride_" + tile.name())), size));
  Value stages = ir.min(w.k_count, ir.c(t.stages));
  const int64_t askers = t.threads - kWarpgroup;
  Value begin = ir.add(ir.sub(ir.thread(), ir.c(kWarpgroup)), ir.mul(sharer, askers));
  const auto ask = [&](Value line) {
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
                                                     ir.mul(ir.remainder(number, 2), sizes.n)));
    }
    Value outer = tile.k_major ? along : k, inner = tile.k_major ? k : along;
    Value inside = ir.both(ir.less(along, extent), ir.less(k, sizes.k));
    ir.branch(inside, [&] {
      ir.prefetch(ir.offset(base, ir.mul(ir.add(ir.mul(ir.to_i64(outer), ld), ir.to_i64(inner)), size)));
    });
  };
  if (sharers.is_constant())
    return ir.rolled_loop(begin, ir.mul(stages, of_stage), askers * sharers.constant(), ask);
  ir.rolled_loop(begin, ir.mul(stages, of_stage), ir.mul(sharers.value(), askers), {},
                 [&](Value line, mlir::ValueRange) {
                   ask(line);
                   return Values();
                 });
}

/// Where a row of the second weight is in B.
Value HopperKernel::second_weight(Value along, int64_t further) const {
  if (sizes.n.is_constant()) return ir.add(along, further + sizes.n.constant());
  return ir.add(ir.add(along, further), sizes.n.value());
}

/// Each block of a cluster loads its part of what it shares with others, and sends it to them and itself.
void HopperKernel::fill_stage(const Work& w, const Edges& edges, Value k_tile, Value to, Value full) {
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
  auto matrix = [&](const HopperTile& tile) { return !tile.is_a() && w.group ? w.group : w.entry; };
  for (int64_t s = 0; s < t.slices; ++s) {
    Value k = ir.add(ir.mul(k_tile, t.bk), s * t.bk_slice);
    load(t.left, edges.left, w.m0, rank_n, left_blocks, k, matrix(t.left), ir.add(to, s * t.left.bytes),
         full);
    load(t.right, edges.right, w.n0, rank_m, right_blocks, k, matrix(t.right),
         ir.add(to, t.slices * t.left.bytes + s * t.right.bytes), full);
  }
}

void HopperKernel::load(const HopperTile& tile, const std::optional<HopperEdge>& edge, Value first,
                        Value part, Value blocks, Value k, Value entry, Value to, Value full) {
  const int64_t rows = tile.rows / tile.pieces, bytes = tile.bytes / tile.pieces;
  if (tile.share > 1)
    first = ir.add(first, ir.mul(part, rows / tile.share)), to = ir.add(to, ir.mul(part, bytes / tile.share));
  if (edge) return edge->load(first, k, entry, to, full, blocks);
  for (int64_t piece = 0; piece < tile.pieces; ++piece) {
    Value begin = first, at_piece = ir.add(to, piece * bytes);
    if (tile.pieces > 1)
      begin = piece % 2 ? second_weight(first, piece / 2 * rows) : ir.add(first, piece / 2 * rows);
    for (int64_t i = 0; i < tile.copies; ++i) {
      Value along = ir.add(begin, i * tile.box_columns); // several copies: columns of memory lie along M or N
      Values at = tile.k_major ? Values{k, begin} : Values{along, k};
      if (entry) at.push_back(entry);
      ir.load_tile(arguments.at("map_" + tile.name()), ir.add(at_piece, i * tile.slice_bytes), full, at,
                   blocks);
    }
  }
}

} // namespace deepgen
