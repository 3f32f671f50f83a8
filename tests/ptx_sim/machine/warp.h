// Warp: 32 threads, their registers, and the groups into which branches have divided them. The group with the
// lowest place in the code runs first, so that groups meet again where the code joins.
#pragma once

#include "tests/ptx_sim/machine/order.h"
#include "tests/ptx_sim/program/program.h"

#include <bit>
#include <cstring>
#include <vector>

namespace deepgen::ptx_sim {

struct Block;

constexpr uint32_t all_lanes = 0xffffffffu;

class Warp {
public:
  enum class State { ready, asleep, waiting, done };

  Warp(Block& block, int index, Agent agent, size_t agents);
  void start(uint32_t live_lanes);
  /// Until it waits for others or ends.
  void run();
  /// It gives way until something in the cluster has changed.
  void wake();

  // For instructions.
  const uint64_t* in(const Operand& o) const {
    return (o.kind == Operand::reg ? registers_.data() : constants_) + 32 * size_t(o.slot);
  }
  uint64_t* registers(const Operand& o) { return registers_.data() + 32 * size_t(o.slot); }
  bool is_active(int lane) const { return active >> lane & 1; }
  int first_active() const { return std::countr_zero(active); }
  /// Writes the active lanes of a register.
  void put(const Operand& to, const uint64_t* lanes) {
    if (to.kind == Operand::nothing) return;
    uint64_t* out = registers(to);
    if (active == all_lanes)
      std::memcpy(out, lanes, 32 * sizeof(uint64_t));
    else
      for (int l = 0; l < 32; ++l)
        if (is_active(l)) out[l] = lanes[l];
  }
  void branch(uint32_t target);
  void exit_lanes();
  /// Whether all `lanes` (default: all that live) are here; if not, this group waits for the others.
  bool gathered(uint32_t lanes);
  bool gathered() { return gathered(live); }
  /// A failed test of what another warp or a copy does: the group gives way until something has changed.
  void give_way() { giving_way_ = true; }
  /// The same, and then the instruction is tried again.
  void try_again() { giving_way_ = trying_again_ = true; }
  void wait() { state = State::waiting; }
  /// What it does from now on is not known to those who know it now.
  void release() { known.seen[agent] = ++clock; }
  Access access(bool async_proxy = false) const { return {agent, clock, &known, async_proxy, line}; }

  Block& block;
  const int index;
  const Agent agent;
  uint32_t clock = 1;
  Knowledge known;
  State state = State::done;
  uint32_t live = 0, mask = 0, active = 0, pc = 0, line = 0;
  uint64_t slept_at = 0; ///< the cluster's version when it fell asleep
  bool waited_for_predecessor = false;

  // cp.async: an agent of the warp's own, whose clock counts groups.
  Agent copies = 0;
  uint32_t copy_group = 1;

  // barrier.cluster: lanes that have arrived, and in which generation.
  uint32_t at_cluster_barrier = 0;
  uint64_t cluster_generation = 0;
  Knowledge initialised; ///< up to the last fence.mbarrier_init
  /// Lanes whose loads from other blocks may be under way: nothing waits for values that are not used, but
  /// the release at a barrier.cluster.
  uint32_t reads_others = 0;

  /// Shared memory that an asynchronous instruction reads, from its beginning on.
  struct Reading {
    Block* block;
    uint64_t offset;
    uint32_t bytes;
  };
  struct ReadingGroup {
    uint32_t group = 0;
    int lane = 0; ///< of bulk copies, whose groups are a thread's
    uint32_t line = 0;
    Knowledge begun;
    std::vector<Reading> readings;
  };
  std::vector<ReadingGroup> bulk_readings, wgmma_readings;
  uint32_t bulk_groups[32] = {}; ///< committed
  Agent warpgroup = 0;           ///< reads what wgmma reads; its clock counts groups
  uint32_t wgmma_clock = 0;      ///< before the first group
  uint32_t wgmma_groups = 0;     ///< committed
  /// Ends the readings for which `done` holds; `reader`: as whose.
  template <typename Done>
  void finish(std::vector<ReadingGroup>& all, const Access& reader, const Done& done);

  /// What wgmma has to do with a register: nothing since the last wgmma.fence, `touched` since then, or by
  /// the group that is still to write it.
  static constexpr uint32_t touched = 1, first_group = 2;
  std::vector<uint32_t> tags;
  /// The last group that reads a register as A, counted as above; 0: none that is under way.
  std::vector<uint32_t> held;

private:
  void watch(const Instruction&);
  struct Group {
    uint32_t mask, pc;
    bool apart = false; ///< waits for other lanes
    bool asleep = false;
  };
  void regroup();

  std::vector<uint64_t> registers_;
  const uint64_t* constants_;
  std::vector<Group> others_;
  uint32_t next_ = 0;
  bool apart_ = false, giving_way_ = false, trying_again_ = false;
};

} // namespace deepgen::ptx_sim
