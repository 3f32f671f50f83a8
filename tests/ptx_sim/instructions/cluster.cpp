// Blocks of a cluster, fences, and atomic operations.
#include "tests/ptx_sim/machine/block.h"
#include "tests/ptx_sim/program/decode.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"

namespace deepgen::ptx_sim {

void Block::check_alive() const {
  for (const auto& warp : warps)
    if (warp->live) return;
  throw Fault("the shared memory of block " + std::to_string(rank) +
              " of the cluster is used after all its threads have ended");
}

bool Cluster::land_one() {
  if (landings.empty()) return false;
  const size_t which = random() % landings.size();
  const std::function<void()> land = landings[which].land;
  landings.erase(landings.begin() + long(which));
  land();
  ++version;
  return true;
}

void Cluster::land_all(const Warp& teller) {
  for (const Landing& x : landings)
    if (x.teller == &teller) x.land();
  std::erase_if(landings, [&](const Landing& x) { return x.teller == &teller; });
}

namespace {

/// mapa d, address, rank
void map_address(Warp& w, const Instruction& in) {
  const uint64_t *address = w.in(in.at(1)), *rank = w.in(in.at(2));
  uint64_t out[32];
  for (int l = 0; l < 32; ++l) {
    const uint64_t block = uint32_t(rank[l]);
    if (w.is_active(l) && block >= w.block.cluster.blocks.size())
      throw Fault("mapa of block " + std::to_string(block));
    out[l] = (block + 1) * cluster_window + (address[l] + uint64_t(in.at(1).offset)) % cluster_window;
  }
  w.put(in.at(0), out);
}

/// in.flag: relaxed, which orders the initialisation of mbarriers alone. Otherwise all that the threads have
/// asked of other blocks comes to its end before.
void arrive(Warp& w, const Instruction& in) {
  if (!in.flag) w.block.cluster.land_all(w), w.reads_others &= ~w.active;
  ClusterBarrier& b = w.block.cluster.barrier;
  if (w.at_cluster_barrier & w.active) throw Fault("barrier.cluster.arrive twice without a wait");
  w.at_cluster_barrier |= w.active;
  w.cluster_generation = b.generation;
  b.sum.join(in.flag ? w.initialised : w.known);
  w.release();
  ++w.block.cluster.version;
}

bool all_arrived(const Cluster& cluster) {
  for (const auto& block : cluster.blocks)
    for (const auto& warp : block->warps)
      if (warp->live & ~warp->at_cluster_barrier) return false;
  return true;
}

void wait(Warp& w, const Instruction&) {
  Cluster& cluster = w.block.cluster;
  ClusterBarrier& b = cluster.barrier;
  if (w.cluster_generation == 0) throw Fault("barrier.cluster.wait without an arrive");
  if (w.cluster_generation == b.generation) {
    if (!all_arrived(cluster)) return w.try_again();
    b.done.join(b.sum);
    b.sum = Knowledge(w.known.seen.size());
    ++b.generation, ++cluster.version;
    for (auto& block : cluster.blocks)
      for (auto& warp : block->warps) warp->at_cluster_barrier = 0;
  }
  w.known.join(b.done);
}

void fence_proxy(Warp& w, const Instruction&) {
  w.known.fenced = w.known.seen;
  w.release();
}

void fence_initialisation(Warp& w, const Instruction&) {
  w.initialised = w.known;
  w.release();
}

/// atom.global.add.u32 d, [a], b and red.global.add.{f32,u32}: in.kind is the address's group.
void add_global(Warp& w, const Instruction& in) {
  const size_t count = in.count(size_t(in.kind + 1));
  uint64_t before[32] = {};
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    const uint64_t address = w.in(in.at(in.kind))[l] + uint64_t(in.at(in.kind).offset);
    uint8_t* bytes = w.block.cluster.memory.modify(address, 4 * count);
    for (size_t i = 0; i < count; ++i) {
      uint32_t x;
      std::memcpy(&x, bytes + 4 * i, 4);
      before[l] = x;
      const uint64_t y = w.in(in.at(size_t(in.kind + 1), i))[l];
      x = in.flag ? uint32_t(to_bits(to_float(x) + to_float(y))) : x + uint32_t(y);
      std::memcpy(bytes + 4 * i, &x, 4);
    }
  }
  if (in.kind == 1) w.put(in.at(0), before);
}

} // namespace

bool decode_cluster(const Opcode& op, Instruction& in) {
  if (op.name() == "mapa")
    in.run = map_address;
  else if (op.text.starts_with("barrier.cluster.arrive"))
    in.run = arrive, in.flag = op.has("relaxed");
  else if (op.text.starts_with("barrier.cluster.wait"))
    in.run = wait;
  else if (op.text.starts_with("fence.proxy.async"))
    in.run = fence_proxy;
  else if (op.text.starts_with("fence.mbarrier_init"))
    in.run = fence_initialisation;
  else if (op.name() == "fence")
    in.run = nothing; // orders nothing alone that the simulator follows
  else if ((op.name() == "atom" || op.name() == "red") && op.has("global") && op.has("add")) {
    const std::string& type = op.last();
    if (type != "u32" && type != "s32" && type != "f32") return false;
    in.run = add_global, in.flag = type == "f32", in.kind = op.name() == "atom" ? 1 : 0;
  }
  return in.run != nullptr;
}

} // namespace deepgen::ptx_sim
