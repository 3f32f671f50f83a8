#include "templates/nvidia/hopper_ws/hopper_ws_sum.h"

#include "templates/core/sizes.h"

namespace deepgen {
namespace {

constexpr int64_t kSumLanes = 4;     ///< sums of one access
constexpr int64_t kAllConsumers = 8; ///< a named barrier; the first ones are of a warpgroup each

} // namespace

HopperClusterSum::HopperClusterSum(HopperIr& ir, const Gemm& p, const HopperTiling& t,
                                   const GpuIr::Arguments& arguments, const HopperPlace& at, Value rank)
    : ir(ir), p(p), t(t), arguments(arguments), at(at), rank_k(ir.remainder(rank, t.cluster_k)) {
  first_rank = ir.sub(rank, rank_k);
}

void HopperClusterSum::emit(const Values& sums, Value goes_on) {
  if (t.consumers > 1)
    ir.named_barrier(ir.c(kAllConsumers), 128 * t.consumers); // all have multiplied the last stages
  leave(sums);
  ir.fence_async(); // TMA writes there next
  ir.cluster_barrier();
  store_share();
  ir.branch(goes_on, [&] { ir.cluster_barrier(); });
}

/// Behind the last tile they meet anyway before they leave.
void HopperClusterSum::meet(HopperIr& ir, Value goes_on) {
  ir.cluster_barrier();
  ir.branch(goes_on, [&] { ir.cluster_barrier(); });
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

void HopperClusterSum::store_share() {
  const int64_t in_row = t.partials.columns / kSumLanes, all = t.partials.rows * in_row,
                share = ceil_div(all, t.cluster_k);
  Value first_row = t.swap ? at.n0 : at.m0, first_column = t.swap ? at.m0 : at.n0;
  const Bounds bounds{
      p.ranged(Size::m) || p.m % (t.partials.rows * (t.swap ? t.cluster_n : t.cluster_m)) != 0,
      p.ranged(Size::n) || p.n % (t.partials.columns * (t.swap ? t.cluster_m : t.cluster_n)) != 0};
  for (int64_t k = 0; k < t.cluster_k; ++k)
    parts.push_back(ir.address_at_block(at.memory, ir.add(first_rank, k)));
  Value begin = ir.mul(rank_k, share), end = ir.min(ir.add(begin, share), ir.c(all));
  Value thread = ir.sub(ir.thread(), ir.c(128)); // the producer's warpgroup comes first
  ir.rolled_loop(ir.add(begin, thread), end, 128 * t.consumers, [&](Value index) {
    Value row = ir.divide(index, in_row), column = ir.mul(ir.sub(index, ir.mul(row, in_row)), kSumLanes);
    Value offset = ir.shift_left(ir.add(ir.mul(row, t.partials.pitch), column), 2);
    row = ir.add(first_row, row), column = ir.add(first_column, column);
    Fragment sums{row, column, ir.unpack(sum_up(offset))};
    if (!p.gate) return GpuEpilogue(ir, p, arguments, at.entry, t.align_d).store(sums, bounds);
    const Fragment up{row, column, ir.unpack(sum_up(ir.add(offset, t.partials.plane())))};
    GpuGate gate(ir, p, arguments);
    GpuEpilogue(ir, GpuGate::rest(p), gate.rest(arguments), at.entry, t.align_d)
        .store(gate.products(sums, up), bounds);
  });
}

} // namespace deepgen
