#include "tests/ptx_sim/machine/warp.h"

#include "tests/ptx_sim/machine/block.h"
#include "tests/ptx_sim/program/fault.h"

namespace deepgen::ptx_sim {

Warp::Warp(Block& block, int index, Agent agent, size_t agents)
    : block(block), index(index), agent(agent), known(agents),
      registers_(32 * block.cluster.program.register_bits.size(), 0xfff8badcfff8badcu),
      constants_(block.cluster.program.constants.data()) {}

void Warp::start(uint32_t live_lanes) {
  live = mask = live_lanes;
  pc = 0;
  others_.clear();
  state = State::ready;
  waited_for_predecessor = false;
  at_cluster_barrier = 0, cluster_generation = 0, reads_others = 0;
  initialised = Knowledge(known.seen.size());
  bulk_readings.clear(), wgmma_readings.clear();
  std::fill(std::begin(bulk_groups), std::end(bulk_groups), 0);
  wgmma_groups = 0;
  if (block.cluster.program.uses_wgmma) {
    tags.assign(block.cluster.program.register_bits.size(), touched);
    held.assign(tags.size(), 0);
  }
}

void Warp::run() {
  const std::vector<Instruction>& code = block.cluster.program.code;
  while (state == State::ready) {
    if (pc >= code.size()) throw Fault("the code ends without ret");
    const Instruction& instruction = code[pc];
    line = instruction.line;
    next_ = pc + 1;
    active = mask;
    if (instruction.guard >= 0) {
      const uint64_t* p = &registers_[32 * size_t(instruction.guard)];
      for (int l = 0; l < 32; ++l)
        if (bool(p[l] & 1) == instruction.guard_negated) active &= ~(1u << l);
    }
    if (active) {
      if (!tags.empty() && !instruction.of_wgmma) watch(instruction);
      instruction.run(*this, instruction);
    }
    if (others_.empty() && !apart_ && !giving_way_ && mask)
      pc = next_;
    else
      regroup();
  }
}

void Warp::branch(uint32_t target) {
  if (active == mask) {
    next_ = target;
    return;
  }
  others_.push_back({active, target});
  mask &= ~active;
}

/// Registers of a wgmma that is under way may be renamed, as the assembler does, but not used. What an
/// instruction writes needs a wgmma.fence before a wgmma has it.
void Warp::watch(const Instruction& in) {
  for (const Operand& o : in.operands)
    if (o.kind == Operand::reg && tags[o.slot] >= first_group && !in.renames)
      throw Fault("a register of a wgmma that is still under way is used");
  for (size_t i = 0; i < (in.groups() ? in.count(0) : 0); ++i)
    if (in.at(0, i).kind == Operand::reg && held[in.at(0, i).slot])
      throw Fault("a register that a wgmma under way reads is written");
  for (size_t i = 0; i < (in.groups() ? in.count(0) : 0); ++i)
    if (in.at(0, i).kind == Operand::reg)
      tags[in.at(0, i).slot] = in.renames && in.at(1).kind == Operand::reg ? tags[in.at(1).slot] : touched;
}

void Warp::exit_lanes() {
  for (const ReadingGroup& r : bulk_readings)
    if (is_active(r.lane))
      throw Fault("a thread ends before the bulk copy of line " + std::to_string(r.line) + " has read");
  if (reads_others & active)
    throw Fault("a thread ends while its loads from another block may be under way, which may have ended");
  live &= ~active, mask &= ~active;
  if (!live) ++block.cluster.version;
}

bool Warp::gathered(uint32_t lanes) {
  if (active == lanes) return true;
  apart_ = true;
  return false;
}

void Warp::regroup() {
  if (mask) others_.push_back({mask, apart_ || trying_again_ ? pc : next_, apart_, giving_way_});
  apart_ = giving_way_ = trying_again_ = false;
  for (size_t i = 0; i < others_.size(); ++i)
    for (size_t j = others_.size() - 1; j > i; --j)
      if (others_[j].pc == others_[i].pc) {
        others_[i] = {others_[i].mask | others_[j].mask, others_[i].pc};
        others_.erase(others_.begin() + long(j));
      }
  if (others_.empty()) {
    state = State::done;
    return;
  }
  size_t best = others_.size();
  bool any_asleep = false;
  for (size_t i = 0; i < others_.size(); ++i) {
    any_asleep |= others_[i].asleep;
    if (others_[i].apart || others_[i].asleep) continue;
    if (best == others_.size() || others_[i].pc < others_[best].pc) best = i;
  }
  if (best == others_.size()) {
    if (!any_asleep)
      throw Fault("the warp has diverged: lanes " + std::to_string(others_[0].mask) + " of " +
                  std::to_string(live) + " wait for the others");
    mask = 0, state = State::asleep, slept_at = block.cluster.version;
    return;
  }
  mask = others_[best].mask, pc = others_[best].pc;
  others_.erase(others_.begin() + long(best));
}

void Warp::wake() {
  for (Group& g : others_) g.asleep = false;
  state = State::ready;
  regroup();
}

} // namespace deepgen::ptx_sim
