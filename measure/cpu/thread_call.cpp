#include "measure/cpu/thread_call.h"

#include "runtime/core/pool.h"
#include "runtime/cpu/split.h"

namespace deepgen {

int shared_by(const Problem& p) {
  if (p.op() != "gemm" || p.work() < kSerialFlops) return 1;
  return int(p.gemm().threads);
}

int64_t workspace_piece(int64_t workspace) {
  constexpr int64_t kAlign = 64; // as the runtime's
  return (workspace + kAlign - 1) / kAlign * kAlign;
}

ThreadCall::ThreadCall(const Kernel& k, const SlotValues& values, int threads) : kernel_(k) {
  deepgen_kernel shape = {};
  const TileRanges full = kernel_.full_range(values);
  shape.tiles_m = full.m1, shape.tiles_n = full.n1, shape.tiles_b = full.b1;
  shape.grain_m = k.grain_m, shape.grain_n = k.grain_n, shape.cut = uint32_t(k.cut);
  const TileGrid grid(shape);
  const Split split = split_tiles(grid, threads);
  for (int task = 0; task < split.count(); ++task) {
    const TileRange r = task_range(grid, split, task);
    SlotValues own = values;
    own[DEEPGEN_ARG_WORKSPACE] += uint64_t(task) * uint64_t(workspace_piece(k.workspace));
    blocks_.push_back(kernel_.arguments(own, {r.m0, r.m1, r.n0, r.n1, r.b0, r.b1}));
  }
}

void ThreadCall::start(int threads) { deepgen_set_num_threads(threads); }

void ThreadCall::run_task(void* context, int index) {
  auto& call = *static_cast<ThreadCall*>(context);
  FloatingPoint::Scope scope(call.floating_point_);
  call.kernel_.call(call.blocks_[size_t(index)]);
}

void ThreadCall::run() {
  if (tasks() > 1 && pool::run(tasks(), run_task, this)) return;
  for (const std::vector<uint64_t>& block : blocks_) kernel_.call(block);
}

} // namespace deepgen
