// What a gemv kernel is made of: warps side by side along W's rows and along K, their sums added in shared
// memory, the epilogue.
#include "templates/core/sizes.h"
#include "templates/gpu/gemv/gemv_warp.h"
#include "templates/gpu/gpu_gate.h"
#include "templates/gpu/gpu_split_k.h"

namespace deepgen {
namespace {

class GemvBlock {
public:
  GemvBlock(GpuIr& builder, const Gemm& problem, const GemvTiling& tiling, const GpuIr::Arguments& arguments)
      : ir(builder), p(problem), t(tiling), args(arguments), sizes(ir, problem, arguments) {}
  void emit();

private:
  GemvOperands operands();
  Value slots(Value warp, Value row, Value column);
  void finish(Value thread);
  Fragment fragment(Value output, int64_t weight);
  Value argument(const std::string& name) { return args.at(name); }

  GpuIr& ir;
  const Gemm& p;
  const GemvTiling& t;
  const GpuIr::Arguments& args;
  const GpuSizes sizes;
  Value batch, first_row, split, row_warp, k_warp;
  Value first_vector; ///< null: the first one of all
};

void GemvBlock::emit() {
  Value block = ir.block_x(), warp = ir.warp();
  const SizeValue rounds = p.ranged(Size::m) ? ir.tiles(sizes.m, t.vectors) : 1,
                  of_entry = ir.product(rounds, t.row_blocks);
  batch = p.batch > 1 ? ir.divide(block, of_entry) : ir.c(0);
  if (p.batch > 1) block = ir.remainder(block, of_entry);
  if (p.ranged(Size::m)) {
    first_vector = ir.mul(ir.divide(block, t.row_blocks), t.vectors);
    block = ir.remainder(block, t.row_blocks);
  }
  first_row = ir.mul(block, t.block_outputs);
  split = t.splits > 1 ? ir.block_y() : ir.c(0);
  row_warp = t.row_warps > 1 ? ir.remainder(warp, t.row_warps) : ir.c(0);
  k_warp = ir.divide(warp, t.row_warps);

  const GemvOperands from = operands();
  GemvWarp work(ir, t, from);
  if (t.dependent) {
    if (t.prefetch) work.prefetch();
    ir.wait_for_predecessor();
    ir.launch_dependents();
  }
  const Values sums = work.run();
  work.store(sums, slots(k_warp, ir.mul(row_warp, t.width), ir.c(0)));
  ir.barrier();
  if (t.splits > 1 && !t.dependent) ir.launch_dependents(); // the reduction
  finish(ir.thread());
}

GemvOperands GemvBlock::operands() {
  const char w = t.weights_b ? 'b' : 'a', x = t.weights_b ? 'a' : 'b';
  const auto base = [&](char operand) {
    Value pointer = argument({operand});
    if (p.batch == 1) return pointer;
    Value elements = ir.mul(ir.to_i64(batch), argument(std::string("stride_") + operand));
    return ir.offset(pointer, ir.mul(elements, t.size));
  };
  const auto pitch = [&](char operand) { return ir.mul(argument(std::string("ld") + operand), t.size); };
  Value weights = base(w), row_warp_of_weight = row_warp;
  if (p.gate) { // the second half of the warps has the second weight
    Value second = ir.at_least(row_warp, t.row_warps / 2);
    Value further = t.k_major ? ir.mul(pitch(w), t.rows) : ir.constant(t.rows * t.size);
    weights = ir.offset(weights, ir.select(second, further, ir.constant(0)));
    row_warp_of_weight = ir.remainder(row_warp, t.row_warps / 2);
  }
  Value vectors = base(x), last;
  if (first_vector) {
    Value first = ir.to_i64(first_vector);
    vectors = ir.offset(vectors, t.vectors_k_major ? ir.mul(first, pitch(x)) : ir.mul(first, t.size));
    last = ir.sub(ir.c(ir.sub(sizes.m, 1)), first_vector);
  }
  return {weights,
          vectors,
          pitch(w),
          pitch(x),
          ir.add(first_row, ir.mul(row_warp_of_weight, t.width)),
          last,
          ir.add(ir.mul(split, t.k_warps), k_warp),
          sizes.k};
}

Value GemvBlock::slots(Value warp, Value row, Value column) {
  Value index = ir.add(ir.mul(ir.add(ir.mul(warp, t.block_rows), row), t.columns), column);
  return ir.offset(ir.shared_memory(), ir.mul(index, t.size == 8 ? 8 : 4));
}

/// Elements of D that the thread makes: neighbouring threads take neighbours in memory.
void GemvBlock::finish(Value thread) {
  const int64_t outputs = t.block_outputs * t.vectors, whole = outputs / t.threads;
  Bounds bounds;
  (t.weights_b ? bounds.columns : bounds.rows) = t.rows % t.block_outputs != 0;
  if (first_vector) bounds.rows = true;
  Value entry = p.batch > 1 ? batch : Value();
  GpuGate gate(ir, p, args);
  GpuEpilogue epilogue(ir, GpuGate::rest(p), p.gate ? gate.rest(args) : args, entry, size_of(p.d));
  const auto store = [&](const Values& at) {
    std::vector<Fragment> sums[2];
    for (int64_t w = 0; w < t.weights; ++w)
      for (Value output : at) sums[w].push_back(fragment(output, w));
    if (t.splits > 1)
      for (int64_t w = 0; w < t.weights; ++w)
        GpuSplitK(p, t.splits).store(ir, args, split, entry, sums[w], bounds, w);
    else
      epilogue.store(p.gate ? gate.products(sums[0], sums[1]) : sums[0], bounds);
  };
  Values at;
  for (int64_t i = 0; i < whole; ++i) at.push_back(ir.add(thread, i * t.threads));
  if (whole) store(at);
  if (outputs % t.threads == 0) return;
  Value last = ir.add(thread, whole * t.threads);
  ir.branch(ir.less(last, outputs), [&] { store({last}); });
}

/// One element: the sums of the warps that share K, in their order.
Fragment GemvBlock::fragment(Value output, int64_t weight) {
  Value row = t.weights_b ? ir.remainder(output, t.block_outputs) : ir.divide(output, t.vectors);
  Value vector = t.weights_b ? ir.divide(output, t.block_outputs) : ir.remainder(output, t.vectors);
  const int64_t bytes = t.size == 8 ? 8 : 4;
  Value slot = slots(ir.c(0), ir.add(row, weight * t.block_outputs), vector), sum;
  for (int64_t warp = 0; warp < t.k_warps; ++warp) {
    Value at = ir.offset(slot, warp * t.block_rows * t.columns * bytes);
    Value part = ir.load(gemv_accumulator(ir, t), at, bytes);
    sum = sum ? ir.add_sums(sum, part) : part;
  }
  row = ir.add(first_row, row);
  if (first_vector) vector = ir.add(first_vector, vector);
  return {t.weights_b ? vector : row, t.weights_b ? row : vector, {sum}};
}

} // namespace

Kernel Gemv::emit(mlir::ModuleOp module, const Gemm& p, const std::string& arch, const Config& config) const {
  const GemvTiling t(p, config);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = gpu_target(arch);
  kernel.args = gpu_arguments(p, t.splits > 1);
  (t.weights_b ? kernel.align_b : kernel.align_a) = t.vec;
  (t.weights_b ? kernel.align_a : kernel.align_b) = t.vector_align();
  kernel.align_d = size_of(p.d);
  const std::unique_ptr<GpuIr> builder = make_gpu_ir(module, kernel.target);
  GpuIr& ir = *builder;
  GpuEntry entry;
  entry.name = kernel_symbol;
  entry.threads = t.threads;
  entry.min_blocks = t.min_blocks(arch);
  entry.shared = t.shared_bytes();
  ir.kernel(entry, p, kernel.args, [&](const GpuIr::Arguments& args) { GemvBlock(ir, p, t, args).emit(); });
  Launch launch;
  launch.entry = kernel_symbol;
  launch.grid = {t.row_blocks * t.rounds * p.batch, t.splits, 1};
  launch.grid_rules[0] = rule_of(p, t.row_blocks, {{Size::batch, 1}});
  if (p.ranged(Size::m))
    launch.grid_rules[0] = rule_of(p, t.row_blocks, {{Size::m, t.vectors}, {Size::batch, 1}});
  launch.block = {t.threads, 1, 1};
  if (!is_amd(arch)) launch.shared = t.shared_bytes(); // AMD's is static
  launch.dependent = t.dependent;
  kernel.launches.push_back(launch);
  GpuSplitK(p, t.splits).add_reduce(ir, kernel);
  return kernel;
}

} // namespace deepgen
