#include "templates/nvidia/hopper_ws/hopper_ws_sum.h"

#include "templates/core/sizes.h"
#include "templates/ir/hopper_ir.h"

namespace deepgen {
namespace {

constexpr int64_t kSumLanes = 4; ///< sums of one access
/// Loads of a thread under way, of four registers each: with 24 a tile of 256 x 112 spills, with 16 one of 64
/// x 128 in five parts takes 1 % longer (an H200).
constexpr int64_t kHeld = 20;
constexpr int64_t kAllConsumers = 8; ///< a named barrier; the first ones are of a warpgroup each

} // namespace

HopperClusterSum::HopperClusterSum(HopperIr& ir, const Gemm& p, const HopperTiling& t,
                                   const GpuIr::Arguments& arguments, const HopperPlace& at, Value rank)
    : ir(ir), p(p), t(t), arguments(arguments), at(at), rank_k(ir.remainder(rank, t.cluster_k)) {
  first_rank = ir.sub(rank, rank_k);
}

void HopperClusterSum::emit(const Values& sums) {
  if (t.consumers > 1)
    ir.named_barrier(ir.c(kAllConsumers), 128 * t.consumers); // all have multiplied the last stages
  leave(sums);
  ir.fence_async(); // TMA writes there next
  ir.cluster_barrier();
  for (int64_t k = 0; k < t.cluster_k; ++k)
    parts.push_back(ir.address_at_block(at.memory, ir.add(first_rank, k)));
  const int64_t steps = ceil_div(share(), threads()),
                last = std::min(steps, kHeld / (t.cluster_k * weights()));
  const bool sure = is_sure(steps - last - 1);
  ir.rolled_loop(ir.c(0), ir.c((steps - last) * threads()), threads(),
                 [&](Value first) { store(load(first, sure)); });
  std::vector<Piece> pieces;
  for (int64_t step = steps - last; step < steps; ++step)
    pieces.push_back(load(ir.c(step * threads()), is_sure(step)));
  // All loads end here, also those of sums beyond D, for which nothing else waits: the block that they are of
  // may end then. The last ones are not stored before: the release would wait for that, too.
  ir.cluster_release();
  for (const Piece& piece : pieces) store(piece);
  ir.cluster_acquire();
}

void HopperClusterSum::meet(HopperIr& ir) {
  ir.cluster_barrier();
  ir.cluster_barrier();
}

void HopperClusterSum::leave(const Values& sums) {
  HopperPlace in_tile = at;
  in_tile.m0 = in_tile.n0 = ir.c(0);
  const std::vector<Values> of_weight = t.by_weight(sums);
  const HopperTiling products = t.of_products();
  for (size_t w = 0; w < of_weight.size(); ++w)
    HopperStore(ir, p, products, arguments, in_tile, mlir::ValueRange(of_weight[w]))
        .leave_sums(ir.add(at.memory, int64_t(w) * t.partials.plane()), t.partials.pitch);
}

Value HopperClusterSum::sum_up(Value offset) {
  mlir::Type vector = ir.lanes(kSumLanes, ir.memory_type(p.accumulate));
  Value sum;
  for (Value part : parts) {
    Value x = ir.load_from_block(vector, ir.add(part, offset));
    sum = sum ? ir.add_sums(sum, x) : x;
  }
  return sum;
}

int64_t HopperClusterSum::share() const { return ceil_div(t.partials.rows * in_row(), t.cluster_k); }
int64_t HopperClusterSum::in_row() const { return t.partials.columns / kSumLanes; }
bool HopperClusterSum::is_sure(int64_t step) const {
  return (step + 1) * threads() <= t.partials.rows * in_row() - (t.cluster_k - 1) * share();
}

HopperClusterSum::Piece HopperClusterSum::load(Value first, bool sure) {
  Value begin = ir.mul(rank_k, share()),
        end = ir.min(ir.add(begin, share()), ir.c(t.partials.rows * in_row()));
  Value thread = ir.sub(ir.thread(), ir.c(128)); // the producer's warpgroup comes first
  Value index = ir.add(ir.add(begin, first), thread);
  Value row = ir.divide(index, in_row()), column = ir.mul(ir.sub(index, ir.mul(row, in_row())), kSumLanes);
  Value offset = ir.shift_left(ir.add(ir.mul(row, t.partials.pitch), column), 2);
  Piece piece{{}, ir.add(t.swap ? at.n0 : at.m0, row), ir.add(t.swap ? at.m0 : at.n0, column), {}};
  const auto sums = [&] {
    Values all = {sum_up(offset)};
    if (p.gate) all.push_back(sum_up(ir.add(offset, t.partials.plane())));
    return all;
  };
  if (sure) {
    piece.sums = sums();
    return piece;
  }
  piece.inside = ir.less(index, end);
  const Values none(size_t(weights()), ir.zero(ir.lanes(kSumLanes, ir.memory_type(p.accumulate))));
  piece.sums = ir.branch(piece.inside, mlir::ValueRange(none).getTypes(), sums, [&] { return none; });
  return piece;
}

void HopperClusterSum::store(const Piece& piece) {
  if (piece.inside) return ir.branch(piece.inside, [&] { store_sums(piece); });
  store_sums(piece);
}

void HopperClusterSum::store_sums(const Piece& piece) {
  const Bounds bounds{
      p.ranged(Size::m) || p.m % (t.partials.rows * (t.swap ? t.cluster_n : t.cluster_m)) != 0,
      p.ranged(Size::n) || p.n % (t.partials.columns * (t.swap ? t.cluster_m : t.cluster_n)) != 0};
  const Fragment sums{piece.row, piece.column, ir.unpack(piece.sums[0])};
  if (!p.gate) return GpuEpilogue(ir, p, arguments, at.entry, t.align_d).store(sums, bounds);
  const Fragment up{piece.row, piece.column, ir.unpack(piece.sums[1])};
  GpuGate gate(ir, p, arguments);
  GpuEpilogue(ir, GpuGate::rest(p), gate.rest(arguments), at.entry, t.align_d)
      .store(gate.products(sums, up), bounds);
}

} // namespace deepgen
