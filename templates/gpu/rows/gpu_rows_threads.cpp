#include "templates/gpu/rows/gpu_rows_threads.h"

namespace deepgen {

GpuRowsThreads::GpuRowsThreads(GpuIr& builder, const GpuRowsTiling& tiling, const GpuRow& row, Value slots)
    : ir(builder), t(tiling), row_(row), slots_(slots) {}

Value GpuRowsThreads::fold(Value lanes, Combine combine) {
  Values all = ir.unpack(lanes);
  while (all.size() > 1) {
    Values next;
    for (size_t i = 0; i + 1 < all.size(); i += 2) next.push_back((ir.*combine)(all[i], all[i + 1]));
    if (all.size() % 2) next.push_back(all.back());
    all = next;
  }
  return all[0];
}

Value GpuRowsThreads::butterfly(Value x, int64_t lanes, Combine combine) {
  for (int64_t mask = lanes / 2; mask > 0; mask /= 2) x = (ir.*combine)(x, ir.shuffle_xor(x, mask));
  return x;
}

Value GpuRowsThreads::in_warp(Value x, Combine combine) {
  return butterfly(fold(x, combine), std::min<int64_t>(32, t.lanes), combine);
}

Value GpuRowsThreads::in_row(Value x, Combine combine) {
  x = in_warp(x, combine);
  return t.crosses_warps() ? over_warps(of_warps({x})[0], combine) : x;
}

Value GpuRowsThreads::other_warp() { return ir.bit_and(ir.lane(), t.warps - 1); }

Value GpuRowsThreads::slot(int64_t index, Value warp) {
  Value at = ir.offset(ir.offset(ir.shared_memory(), slots_), ir.mul(warp, 4));
  return ir.offset(at, (first_ + index) * t.threads / 32 * 4);
}

Values GpuRowsThreads::of_warps(const Values& values) {
  first_ = used_, used_ += int64_t(values.size());
  Value own = warp();
  ir.branch(ir.equal(ir.lane(), ir.c(0)), [&] {
    for (size_t i = 0; i < values.size(); ++i) ir.store(values[i], slot(int64_t(i), own), 4);
  });
  ir.barrier();
  Value other = ir.add(first_warp(), other_warp());
  Values out;
  for (size_t i = 0; i < values.size(); ++i)
    out.push_back(ir.load(values[i].getType(), slot(int64_t(i), other), 4));
  return out;
}

Value GpuRowsThreads::of_first_warp(int64_t index) { return ir.load(ir.f32, slot(index, first_warp()), 4); }

Value GpuRowsThreads::over_warps(Value x, Combine combine) { return butterfly(x, t.warps, combine); }

} // namespace deepgen
