// Wave: the lanes that run in lockstep, their registers, and the ways into which branches have divided them.
// Divided lanes meet again at the branch's immediate post-dominator: as late as the hardware may let them.
#pragma once

#include "tests/amd_sim/machine/program.h"
#include "tests/ptx_sim/machine/order.h"

#include <bit>
#include <cstring>
#include <vector>

namespace deepgen::amd_sim {

struct Workgroup;

class Wave {
public:
  enum class State { ready, waiting, done };

  Wave(Workgroup& group, int index, int waves);
  /// `threads`: of the workgroup, of which this wave has lanes * index ...
  void start(uint32_t threads);
  /// Until it waits for others or ends.
  void run();

  // For instructions.
  const uint64_t* in(const Operand& o, uint32_t component = 0) const {
    return (o.constant ? constants_ : registers_.data()) + size_t(o.slot + component) * size_t(lanes);
  }
  bool is_active(int lane) const { return active >> lane & 1; }
  int first_active() const { return std::countr_zero(active); }
  uint64_t all_lanes() const { return all_; }
  /// Computes a component of the result, f(lane), for the active lanes.
  template <typename F>
  void compute(const Operand& result, uint32_t component, const F& f) {
    uint64_t* out = registers_.data() + size_t(result.slot + component) * size_t(lanes);
    if (active == all_)
      for (int l = 0; l < lanes; ++l) out[l] = f(l);
    else
      for (int l = 0; l < lanes; ++l)
        if (is_active(l)) out[l] = f(l);
  }
  void put(const Operand& result, uint32_t component, const uint64_t* values) {
    compute(result, component, [values](int l) { return values[l]; });
  }
  void set_lane(const Operand& result, uint32_t component, int lane, uint64_t x) {
    registers_[size_t(result.slot + component) * size_t(lanes) + size_t(lane)] = x;
  }
  void branch(const Instruction& in, const std::vector<uint64_t>& masks);
  void leave();
  /// Throws Fault unless all lanes that have not ended are here.
  void expect_together(const char* what) const;
  /// Throws Fault unless the active lanes agree; returns the value.
  uint64_t uniform(const Operand&, const char* what, uint32_t component = 0) const;

  // Order. LDS operations of a wave happen in order, but how many have happened is known only after a wait.
  void count_lds() { known.seen[agent] = ++lds_clock; }
  void count_vector_memory(uint32_t operations) { memory_clock += operations; }
  void wait(const WaitCount&);
  /// Fences of any scope, waits and barriers: until then, lanes may not rely on each other's LDS writes.
  void order_lanes() { ++lane_epoch; }
  /// What others know when they know that this wave has come here.
  ptx_sim::Knowledge published() const;
  ptx_sim::Access lds_access() const { return {agent, lds_clock, &known, false, line()}; }
  const Chip& group_chip() const { return group_program().chip; }
  uint32_t line() const { return group_program().line(*at); }

  Workgroup& group;
  const int index, lanes;
  const ptx_sim::Agent agent, copies; ///< copies: what loads into LDS on its own
  ptx_sim::Knowledge known;
  uint32_t lds_clock = 0, lds_done = 0, memory_clock = 0, memory_done = 0;
  uint32_t last_copy = 0; ///< into LDS: memory_clock at that time
  uint32_t lane_epoch = 1;
  State state = State::done;
  uint64_t live = 0, active = 0;
  const Instruction* at = nullptr;
  uint32_t who = 0;                    ///< in the launch, for global memory
  std::vector<uint8_t> private_memory; ///< [lane][byte]

private:
  struct Entry {
    uint64_t mask;
    uint32_t block;
    int32_t join;
  };
  const Program& group_program() const;
  void move(const Edge&, uint64_t mask);
  void settle();

  const uint64_t* constants_;
  uint64_t all_;
  std::vector<uint64_t> registers_, staging_;
  std::vector<Entry> ways_;
  uint32_t next_ = 0;
  uint64_t steps_ = 0;
};

} // namespace deepgen::amd_sim
