// Block and Cluster: what warps share while they run.
#pragma once

#include "tests/ptx_sim/machine/global_memory.h"
#include "tests/ptx_sim/machine/mbarrier.h"
#include "tests/ptx_sim/machine/shared_memory.h"
#include "tests/ptx_sim/machine/warp.h"

#include <array>
#include <memory>
#include <random>

namespace deepgen::ptx_sim {

struct Cluster;

/// bar.sync, bar.arrive: counts threads.
struct NamedBarrier {
  uint32_t arrived = 0, expected = 0;
  Knowledge sum;
  std::vector<Warp*> waiting;
};

struct Block {
  Cluster& cluster;
  uint32_t rank = 0; ///< in the cluster
  SharedMemory shared;
  std::array<NamedBarrier, 16> barriers;
  std::map<uint64_t, Mbarrier> mbarriers; ///< by offset in shared memory
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<uint32_t, 3> index{}; ///< in the grid
  uint32_t threads = 0;

  Block(Cluster& cluster, uint32_t rank, size_t shared_bytes, size_t readers)
      : cluster(cluster), rank(rank), shared(shared_bytes, readers) {}
  Mbarrier& mbarrier_at(uint64_t offset, const Access&);
  /// Throws Fault when all of its threads have ended: its shared memory is no more.
  void check_alive() const;
};

/// barrier.cluster: of all threads that have not ended.
struct ClusterBarrier {
  uint64_t generation = 1; ///< counts completions
  Knowledge sum, done;
};

/// The blocks that run at the same time: one, or those of a cluster.
struct Cluster {
  Cluster(const Program& program, GlobalMemory& memory, const std::vector<uint8_t>& parameters,
          std::mt19937_64& random, bool dependent)
      : program(program), memory(memory), parameters(parameters), random(random), dependent(dependent) {}

  const Program& program;
  GlobalMemory& memory;
  const std::vector<uint8_t>& parameters; ///< bytes of the launch's parameters
  std::mt19937_64& random;
  bool dependent;       ///< the launch may start before its predecessor ends
  uint64_t number = 0;  ///< in the grid
  uint64_t version = 1; ///< counts changes that may let another warp go on
  std::vector<std::unique_ptr<Block>> blocks;
  Agent next_mbarrier = 0;
  /// What is under way, and ends at a random time: bulk copies, and what a warp tells other blocks'
  /// mbarriers.
  struct Landing {
    const Warp* teller; ///< null: a copy
    std::function<void()> land;
  };
  std::vector<Landing> landings;
  ClusterBarrier barrier;
  Knowledge all; ///< what has happened so far, for the blocks that start

  void settle(Mbarrier&);
  /// Lets one of them end; false when nothing is under way.
  bool land_one();
  /// Lets all end that the warp tells other blocks.
  void land_all(const Warp& teller);
  /// Of a shared address, which may be another block's.
  Block& block_of(Block& own, uint64_t address, uint64_t& offset);
};

} // namespace deepgen::ptx_sim
