#include "tests/ptx_sim/machine/launch.h"

#include "tests/ptx_sim/machine/block.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/parse.h"

#include <algorithm>
#include <numeric>

namespace deepgen::ptx_sim {
namespace {

int64_t product(const std::array<int64_t, 3>& x) { return x[0] * x[1] * x[2]; }

std::array<int64_t, 3> place(int64_t index, const std::array<int64_t, 3>& size) {
  return {index % size[0], index / size[0] % size[1], index / size[0] / size[1]};
}

std::vector<uint8_t> lay_out(const Program& program, const std::vector<std::vector<uint8_t>>& arguments) {
  if (program.parameters.size() != arguments.size())
    throw Fault("the entry has " + std::to_string(program.parameters.size()) + " parameters, the call " +
                std::to_string(arguments.size()));
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& p = program.parameters[i];
    if (p.bytes != arguments[i].size())
      throw Fault("parameter " + p.name + " has " + std::to_string(p.bytes) + " bytes, the argument " +
                  std::to_string(arguments[i].size()));
    bytes.resize(p.offset + p.bytes);
    std::copy(arguments[i].begin(), arguments[i].end(), bytes.begin() + p.offset);
  }
  return bytes;
}

class Grid {
public:
  Grid(const Program& program, const LaunchShape& shape, const std::vector<uint8_t>& parameters,
       GlobalMemory& memory, uint64_t seed)
      : shape_(shape), random_(seed), cluster_(program, memory, parameters, random_, shape.dependent) {
    const auto threads = uint32_t(product(shape.block));
    const size_t warps_per_block = (threads + 31) / 32, blocks = size_t(product(shape.cluster));
    // Readers first: warps and warpgroups; then what copies for a warp; then mbarriers.
    const size_t groups_per_block = (warps_per_block + 3) / 4, warps = warps_per_block * blocks;
    const size_t readers = warps + groups_per_block * blocks,
                 agents = readers + warps + kMbarriers * (blocks + 1);
    cluster_.all = Knowledge(agents);
    for (size_t b = 0; b < blocks; ++b) {
      cluster_.blocks.push_back(std::make_unique<Block>(
          cluster_, uint32_t(b), size_t(shape.shared) + program.static_shared, readers));
      Block& block = *cluster_.blocks.back();
      block.threads = threads;
      for (size_t w = 0; w < warps_per_block; ++w) {
        const auto agent = Agent(b * warps_per_block + w);
        block.warps.push_back(std::make_unique<Warp>(block, int(w), agent, agents));
        block.warps.back()->copies = Agent(readers) + agent;
        block.warps.back()->warpgroup = Agent(warps + b * groups_per_block + w / 4);
        order_.push_back(block.warps.back().get());
      }
    }
    first_mbarrier_ = Agent(readers + warps);
  }

  void run() {
    std::array<int64_t, 3> clusters;
    for (size_t i = 0; i < 3; ++i) {
      if (shape_.grid[i] % shape_.cluster[i]) throw Fault("the grid is no whole number of clusters");
      clusters[i] = shape_.grid[i] / shape_.cluster[i];
    }
    std::vector<int64_t> all(size_t(product(clusters)));
    std::iota(all.begin(), all.end(), 0);
    if (!waits_for_flags()) std::shuffle(all.begin(), all.end(), random_);
    for (int64_t c : all) {
      start(place(c, clusters), uint64_t(c));
      schedule();
      finish();
    }
  }

private:
  static constexpr size_t kMbarriers = 48; ///< for each block, and as many for all

  /// Blocks that wait for flags of others run in the order in which a device starts them.
  bool waits_for_flags() const {
    return std::ranges::any_of(cluster_.program.code, [](const Instruction& in) {
      return in.opcode.starts_with("ld.acquire.gpu.global");
    });
  }

  void start(const std::array<int64_t, 3>& at, uint64_t number) {
    cluster_.number = number;
    cluster_.next_mbarrier = first_mbarrier_;
    const size_t agents = cluster_.all.seen.size();
    cluster_.barrier = {1, Knowledge(agents), Knowledge(agents)};
    for (auto& block : cluster_.blocks) {
      const auto inside = place(block->rank, shape_.cluster);
      for (size_t i = 0; i < 3; ++i) block->index[i] = uint32_t(at[i] * shape_.cluster[i] + inside[i]);
      block->shared.start_block();
      block->mbarriers.clear();
      for (NamedBarrier& b : block->barriers) b = {0, 0, Knowledge(cluster_.all.seen.size()), {}};
      for (auto& warp : block->warps) start(*warp);
    }
  }

  void start(Warp& w) {
    const Block& block = w.block;
    const uint32_t first = uint32_t(w.index) * 32, count = std::min(32u, block.threads - first);
    w.start(count == 32 ? all_lanes : (1u << count) - 1);
    w.known.join(cluster_.all);
    w.wgmma_clock = cluster_.all.seen[w.warpgroup];
    w.release();
    const auto set = [&](size_t slot, auto value) {
      uint64_t* lanes = w.registers({Operand::reg, uint32_t(slot), 0});
      for (uint32_t l = 0; l < 32; ++l) lanes[l] = uint64_t(value(l));
    };
    const auto same = [&](size_t slot, uint64_t x) { set(slot, [=](uint32_t) { return x; }); };
    for (size_t i = 0; i < 3; ++i) {
      set(i, [&](uint32_t l) { return place(first + l, shape_.block)[i]; });
      same(3 + i, uint64_t(shape_.block[i])), same(6 + i, block.index[i]),
          same(9 + i, uint64_t(shape_.grid[i]));
    }
    set(12, [](uint32_t l) { return l; });
    same(13, uint64_t(w.index)), same(14, block.rank), same(15, uint64_t(product(shape_.cluster)));
    same(16, block.index[0] / uint64_t(shape_.cluster[0])),
        same(17, uint64_t(shape_.grid[0] / shape_.cluster[0]));
    same(18, block.index[0] % uint64_t(shape_.cluster[0])), same(19, uint64_t(shape_.cluster[0]));
    same(20, 0), same(21, 0);
  }

  void schedule() {
    while (true) {
      std::shuffle(order_.begin(), order_.end(), random_);
      bool progress = false, all_done = true;
      for (Warp* w : order_) {
        if (w->state == Warp::State::asleep && w->slept_at != cluster_.version) w->wake();
        if (w->state == Warp::State::ready) run(*w), progress = true;
        all_done &= w->state == Warp::State::done;
      }
      if (all_done && cluster_.landings.empty()) return;
      // A copy ends now and then, and when nothing else happens.
      const bool landed = (!progress || random_() % 2) && cluster_.land_one();
      if (!progress && !landed) throw Fault("deadlock:" + places());
    }
  }

  void run(Warp& w) {
    try {
      w.run();
    } catch (const Fault& f) {
      throw Fault(std::string(f.what()) + "\n  in " + describe(w));
    }
  }

  void finish() {
    for (auto& block : cluster_.blocks)
      for (auto& [offset, barrier] : block->mbarriers) {
        cluster_.all.join(barrier.done);
        cluster_.all.learn(barrier.agent, barrier.clock());
      }
    for (Warp* w : order_) cluster_.all.join(w->known);
    for (Warp* w : order_) {
      cluster_.all.learn(w->copies, w->copy_group++);
      cluster_.all.learn(w->warpgroup, w->wgmma_clock + w->wgmma_groups + 1);
    }
  }

  std::string describe(const Warp& w) const {
    const auto& at = w.block.index;
    return "block " + std::to_string(at[0]) + "," + std::to_string(at[1]) + "," + std::to_string(at[2]) +
           " warp " + std::to_string(w.index) + " line " + std::to_string(w.line) + ": " +
           trim(cluster_.program.source(w.line));
  }

  std::string places() const {
    std::string text;
    for (const Warp* w : order_)
      if (w->state != Warp::State::done) text += "\n  " + describe(*w);
    for (const auto& block : cluster_.blocks)
      for (const auto& [offset, b] : block->mbarriers)
        text += "\n  mbarrier at " + std::to_string(offset) + " of block " + std::to_string(block->rank) +
                " of the cluster: " + std::to_string(b.completed) + " phases complete, " +
                std::to_string(b.pending) + " of " + std::to_string(b.count) + " arrivals and " +
                std::to_string(b.bytes) + " bytes to come";
    return text;
  }

  const LaunchShape& shape_;
  std::mt19937_64 random_;
  Cluster cluster_;
  std::vector<Warp*> order_;
  Agent first_mbarrier_ = 0;
};

} // namespace

Block& Cluster::block_of(Block& own, uint64_t address, uint64_t& offset) {
  offset = address % cluster_window;
  const uint64_t rank = address / cluster_window;
  if (rank > blocks.size()) throw Fault("no shared address: " + std::to_string(address));
  return rank == 0 ? own : *blocks[rank - 1];
}

void run_launch(const std::string& ptx, const LaunchShape& shape,
                const std::vector<std::vector<uint8_t>>& arguments, GlobalMemory& memory, uint64_t seed) {
  const Program program(ptx, shape.entry);
  const std::vector<uint8_t> parameters = lay_out(program, arguments);
  memory.start_launch();
  Grid(program, shape, parameters, memory, seed).run();
}

} // namespace deepgen::ptx_sim
