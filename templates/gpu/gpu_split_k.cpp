#include "templates/gpu/gpu_split_k.h"

#include "templates/core/sizes.h"
#include "templates/gpu/gpu_gate.h"

namespace deepgen {
namespace {

constexpr int64_t kThreads = 128;
constexpr int64_t kInFlight = 8; ///< partial sums that a thread loads before it adds the first

} // namespace

GpuSplitK::GpuSplitK(const Gemm& p, int64_t splits)
    : problem_(p), splits_(splits), pitch_(round_up(p.n, 16 / size_of(p.accumulate))) {}

int64_t GpuSplitK::most_plane() const { return problem_.batch * problem_.m * pitch_ * size_of(type()); }

SizeValue GpuSplitK::plane(GpuIr& ir, const GpuSizes& sizes) const {
  return ir.product(ir.product(ir.wide(sizes.m), ir.wide(sizes.batch)), pitch_ * size_of(type()));
}

int64_t GpuSplitK::workspace() const { return splits_ == 1 ? 0 : splits_ * weights() * most_plane(); }

SizeRule GpuSplitK::workspace_rule() const {
  return rule_of(problem_, splits_ * weights() * pitch_ * size_of(type()), {{Size::m, 1}, {Size::batch, 1}});
}

int64_t GpuSplitK::lanes() const {
  // A small output has more threads of fewer columns each: the reduction is then bound by latency.
  int64_t lanes = 16 / size_of(type());
  while (lanes > 1 && problem_.batch * problem_.m * pitch_ / lanes < 128 * kThreads) lanes /= 2;
  return lanes;
}

int64_t GpuSplitK::most_vectors() const { return problem_.batch * problem_.m * (pitch_ / lanes()); }

SizeValue GpuSplitK::vectors(GpuIr& ir, const GpuSizes& sizes) const {
  return ir.product(ir.product(sizes.m, sizes.batch), pitch_ / lanes());
}

void GpuSplitK::store(GpuIr& ir, const GpuIr::Arguments& arguments, Value split, Value entry,
                      llvm::ArrayRef<Fragment> fragments, Bounds bounds, int64_t weight) const {
  const int64_t bytes = size_of(type());
  const GpuSizes sizes(ir, problem_, arguments);
  Value plane = split;
  if (problem_.gate) plane = ir.add(ir.mul(split, 2), weight);
  if (entry && problem_.batch > 1) plane = ir.add(ir.mul(plane, sizes.batch), entry);
  Value base = ir.offset(arguments.at("workspace"),
                         ir.mul(ir.to_i64(plane), ir.product(ir.wide(sizes.m), pitch_ * bytes)));
  for (const Fragment& f : fragments) {
    const int64_t count = int64_t(f.values.size());
    int64_t width = 16 / bytes;
    while (count % width) width /= 2;
    Value row = ir.offset(base, ir.mul(ir.to_i64(f.row), pitch_ * bytes));
    for (int64_t first = 0; first < count; first += width) {
      Value column = ir.add(f.column, first);
      auto write = [&] {
        Value at = ir.offset(row, ir.mul(ir.to_i64(column), bytes));
        ir.store(ir.pack(mlir::ValueRange(f.values).slice(size_t(first), size_t(width))), at, width * bytes);
      };
      Value inside;
      if (bounds.rows) inside = ir.less(f.row, sizes.m);
      if (bounds.columns) {
        Value fits = ir.less(column, pitch_);
        inside = inside ? ir.both(inside, fits) : fits;
      }
      if (inside)
        ir.branch(inside, write);
      else
        write();
    }
  }
}

Value GpuSplitK::sum_up(GpuIr& ir, const GpuSizes& sizes, Value at) const {
  const int64_t columns = lanes(), bytes = columns * size_of(type());
  const SizeValue step = ir.product(plane(ir, sizes), weights());
  mlir::Type vector = ir.lanes(columns, ir.memory_type(type()));
  auto add_some = [&](Value sum, Value from, int64_t count) {
    Values loaded;
    for (int64_t s = 0; s < count; ++s)
      loaded.push_back(ir.load(vector, ir.offset(from, ir.product(step, s)), bytes));
    for (Value x : loaded) sum = sum ? ir.add_sums(sum, x) : x;
    return sum;
  };
  const int64_t head = splits_ % kInFlight ? splits_ % kInFlight : kInFlight;
  Value sum = add_some(nullptr, at, head);
  if (head == splits_) return sum;
  return ir.rolled_loop(ir.c(head), ir.c(splits_), kInFlight, sum, [&](Value s, mlir::ValueRange carried) {
    Value from = ir.offset(at, ir.mul(ir.to_i64(s), step));
    return Values{add_some(carried[0], from, kInFlight)};
  })[0];
}

void GpuSplitK::reduce(GpuIr& ir, const GpuIr::Arguments& arguments, int64_t align_d) const {
  const int64_t columns = lanes(), per_row = pitch_ / columns;
  ir.wait_for_predecessor();
  const GpuSizes sizes(ir, problem_, arguments);
  Value index = ir.add(ir.mul(ir.block_x(), kThreads), ir.thread());
  ir.branch(ir.less(index, vectors(ir, sizes)), [&] {
    Value line = ir.divide(index, per_row), column = ir.mul(ir.sub(index, ir.mul(line, per_row)), columns);
    Value entry, row = line;
    if (problem_.batch > 1) entry = ir.divide(line, sizes.m), row = ir.sub(line, ir.mul(entry, sizes.m));
    Value at = ir.offset(arguments.at("workspace"), ir.mul(ir.to_i64(index), columns * size_of(type())));
    Fragment sums{row, column, ir.unpack(sum_up(ir, sizes, at))};
    const Bounds bounds{false, problem_.ranged(Size::n) || pitch_ != problem_.n};
    if (!problem_.gate) return GpuEpilogue(ir, problem_, arguments, entry, align_d).store(sums, bounds);
    const Fragment up{row, column, ir.unpack(sum_up(ir, sizes, ir.offset(at, plane(ir, sizes))))};
    GpuGate gate(ir, problem_, arguments);
    GpuEpilogue(ir, GpuGate::rest(problem_), gate.rest(arguments), entry, align_d)
        .store(gate.products(sums, up), bounds);
  });
}

Launch GpuSplitK::emit_reduce(GpuIr& ir, const std::vector<std::string>& arguments, int64_t align_d) const {
  Launch launch;
  launch.entry = "deepgen_reduce";
  launch.grid[0] = round_up(most_vectors(), kThreads) / kThreads;
  launch.grid_rules[0] = covering_rule(problem_, pitch_ / lanes(), kThreads);
  launch.block[0] = kThreads;
  launch.dependent = ir.launches_early();
  GpuEntry entry;
  entry.name = launch.entry, entry.threads = kThreads;
  ir.kernel(entry, problem_, arguments, [&](const GpuIr::Arguments& values) { reduce(ir, values, align_d); });
  return launch;
}

void GpuSplitK::add_reduce(GpuIr& ir, Kernel& kernel) const {
  if (splits_ == 1) return;
  if (!kernel.workspace) kernel.workspace_rule = workspace_rule();
  kernel.workspace = std::max(kernel.workspace, workspace());
  kernel.launches.push_back(emit_reduce(ir, kernel.args, kernel.align_d));
}

int64_t split_workspace(const Gemm& p, const Config& config) {
  return GpuSplitK(p, config["splits"]).workspace();
}

} // namespace deepgen
