// The kernel of hopper_attention: what its roles share, and its description.
#include "templates/core/sizes.h"
#include "templates/gpu/attention/attention_combine.h"
#include "templates/nvidia/hopper_attention/hopper_attention_kernel.h"

#include <algorithm>

namespace deepgen {

HopperAttentionKernel::HopperAttentionKernel(HopperIr& builder, const Attention& problem,
                                             const HopperAttentionTiling& tiling,
                                             const GpuIr::Arguments& args)
    : ir(builder), p(problem), t(tiling), together(tiling.together(problem)), arguments(args),
      block(builder, problem, tiling, args) {}

void HopperAttentionKernel::start() {
  memory = ir.address(ir.shared_memory()), barriers = ir.add(memory, t.barriers_offset);
  ir.branch(ir.less(ir.thread(), 1), [&] {
    const int64_t lanes = by_warp() ? 32 : 1; // told_by_lanes()
    for (int64_t s = 0; s < t.q_stages; ++s)
      ir.barrier_init(q_full(ir.c(s)), lanes), ir.barrier_init(q_empty(ir.c(s)), t.consumers);
    for (int64_t s = 0; s < t.stages; ++s) {
      ir.barrier_init(key_full(ir.c(s)), 1);
      ir.barrier_init(value_full(ir.c(s)), t.narrow ? kTurningWarps : 1);
      if (t.narrow)
        ir.barrier_init(raw_full(ir.c(s)), lanes), ir.barrier_init(raw_empty(ir.c(s)), kTurningWarps);
      ir.barrier_init(key_empty(ir.c(s)), t.consumers), ir.barrier_init(value_empty(ir.c(s)), t.consumers);
    }
    if (p.paged()) ir.barrier_init(landed(), t.narrow ? lanes : 1);
    ir.fence_barrier_init();
  });
  ir.barrier();
  ir.launch_dependents(); // that wait for this launch's end, with their own start behind them
  ir.wait_for_predecessor();
  if (!p.varlen) return;
  Value no = ir.c(ir.i1, 0);
  dense_queries = ir.equal(block.is_passed("query_offsets"), no);
  if (p.paged()) return;
  dense_keys = ir.equal(ir.bit_or(block.is_passed("key_offsets"), block.is_passed("keys_used")), no);
}

void HopperAttentionKernel::emit() {
  start();
  ir.branch(ir.less(ir.warpgroup(), 1), [&] { produce(); }, [&] { consume(); });
}

/// Every other round of the grid goes backwards: where blocks of rows are sorted by their work, all blocks of
/// the grid get about as much.
void HopperAttentionKernel::walk(mlir::ValueRange carried,
                                 const std::function<Values(mlir::ValueRange)>& body) {
  Value rows = ir.to_i32(arguments.at("m"));
  if (t.pack) rows = ir.mul(rows, t.group);
  Value row_blocks = ir.divide(ir.add(rows, t.rows - 1), t.rows);
  Value pairs = ir.mul(ir.to_i32(arguments.at("batch")), t.heads(p));
  Value end = ir.mul(ir.to_i64(row_blocks), ir.to_i64(pairs)), width = ir.grid_x();
  if (t.splits > 1) {
    block.find_split();
    end = ir.mul(end, ir.to_i64(block.splits()));
  }
  Values state = {ir.block_x()};
  state.append(carried.begin(), carried.end());
  ir.rolled_loop(ir.constant(0), end, ir.to_i64(width), state, [&](Value first, mlir::ValueRange before) {
    const mlir::ValueRange rest = before.drop_front(1);
    Value own = before[0], index = ir.add(first, ir.to_i64(own));
    const auto unchanged = [&] { return Values(rest); };
    const Values after = ir.branch(
        ir.less(index, end), rest.getTypes(),
        [&] {
          Value exists = block.locate(locate_part(index, row_blocks, pairs));
          return ir.branch(exists, rest.getTypes(), [&] { return body(rest); }, unchanged);
        },
        unchanged);
    Values out = {ir.sub(ir.sub(width, ir.c(1)), own)};
    out.append(after);
    return out;
  });
}

/// Pairs of entry and head follow each other, `together` at a time; of these the first blocks of rows come
/// first.
AttentionBlock::Place HopperAttentionKernel::locate(Value index, Value row_blocks, Value pairs) const {
  Value of_section = ir.mul(ir.to_i64(row_blocks), together), section = ir.divide(index, of_section);
  Value inside = ir.to_i32(ir.sub(index, ir.mul(section, of_section))), number = inside;
  Value pair = ir.to_i32(section);
  if (together > 1) {
    Value first = ir.mul(pair, together), count = ir.min(ir.sub(pairs, first), ir.c(together));
    number = ir.divide(inside, count);
    pair = ir.add(first, ir.sub(inside, ir.mul(number, count)));
  }
  Value entry = ir.divide(pair, t.heads(p));
  return {number, ir.sub(pair, ir.mul(entry, t.heads(p))), entry};
}

/// Parts of a block of rows follow each other, so that they run at a time.
AttentionBlock::Place HopperAttentionKernel::locate_part(Value index, Value row_blocks, Value pairs) const {
  if (t.splits == 1) return locate(index, row_blocks, pairs);
  Value split = ir.to_i32(ir.remainder(index, t.splits)); // a power of two
  Value whole = ir.select(block.is_split(), ir.divide(index, t.splits), index);
  AttentionBlock::Place place = locate(whole, row_blocks, pairs);
  place.split = ir.select(block.is_split(), split, ir.c(0));
  return place;
}

/// With splits, of the block's part of the keys, which may have none.
HopperAttentionKernel::KeyBlocks HopperAttentionKernel::key_blocks() const {
  if (t.splits > 1) {
    const AttentionBlock::Bounds seen = block.seen_keys();
    Value from = ir.divide(seen.from, t.keys);
    return {from, ir.max(from, ir.divide(ir.add(seen.to, t.keys - 1), t.keys))};
  }
  Value from = ir.divide(block.first().from, t.keys);
  Value to = ir.divide(ir.add(block.last().to, t.keys - 1), t.keys);
  return {from, ir.max(from, to)};
}

HopperAttentionKernel::RingPlace HopperAttentionKernel::next(RingPlace at) const {
  Value stage = ir.add(at.stage, 1), wraps = ir.equal(stage, ir.c(t.stages));
  return {ir.select(wraps, ir.c(0), stage), ir.select(wraps, ir.bit_xor(at.parity, 1), at.parity)};
}

/// Rows that see no keys have no Q.
HopperAttentionKernel::RingPlace HopperAttentionKernel::after_q(RingPlace at, const KeyBlocks& blocks) const {
  Value moves = ir.select(ir.less(blocks.from, blocks.to), ir.c(1), ir.c(0));
  if (t.q_stages == 1) return {at.stage, ir.bit_xor(at.parity, moves)};
  return {ir.bit_xor(at.stage, moves), ir.bit_xor(at.parity, ir.bit_and(at.stage, moves))};
}

namespace {

constexpr int64_t kTokenPromotion = 128;                 ///< bytes: L2 fetches whole lines
constexpr int64_t kMostBlocksX = (int64_t(1) << 31) - 1; ///< blocks along x

} // namespace

Kernel HopperAttention::emit(mlir::ModuleOp module, const Attention& p, const std::string&,
                             const Config& config) const {
  const HopperAttentionTiling t(p, config);
  Kernel kernel;
  kernel.problem = p;
  kernel.target = "sm_90a";
  kernel.args = gpu_arguments(p);
  kernel.args.push_back("batch");
  for (const auto& [name, rows] : {std::pair{"q", t.rows}, {"key", t.box}, {"value", t.box}}) {
    kernel.maps.push_back({name, t.slice, rows, 128, kTokenPromotion, {}});
    kernel.args.push_back(std::string("map_") + name);
  }
  if (t.splits > 1) kernel.args.push_back("workspace");
  kernel.workspace = t.workspace(p);
  kernel.align_a = kernel.align_d = 16;
  HopperIr ir(module, kernel.target);
  GpuEntry entry;
  entry.name = kernel_symbol, entry.threads = t.threads, entry.min_blocks = t.resident;
  ir.kernel(entry, p, kernel.args,
            [&](const GpuIr::Arguments& arguments) { HopperAttentionKernel(ir, p, t, arguments).emit(); });
  Launch launch;
  launch.entry = kernel_symbol;
  const auto [first, tokens] = t.blocks();
  const int64_t each = first * t.heads(p) * t.splits;
  launch.grid[0] = std::min(kMostBlocksX, each * ceil_div(p.queries, tokens) * most_attention_batch);
  launch.grid_rules[0] = {each, {tokens, 0, 0, 1}};
  launch.block = {t.threads, 1, 1};
  launch.shared = t.shared;
  launch.persistent = t.persistent;
  launch.dependent = true;
  kernel.launches.push_back(launch);
  if (t.splits > 1) kernel.launches.push_back(combine_parts(ir, p, t, kernel.args, {true, 32, false}));
  return kernel;
}

} // namespace deepgen
