#include "tests/amd_sim/machine/wave.h"

#include "tests/amd_sim/machine/decode.h"
#include "tests/amd_sim/machine/workgroup.h"
#include "tests/ptx_sim/program/fault.h"

#include <algorithm>

namespace deepgen::amd_sim {
namespace {

constexpr uint64_t kMostSteps = 50'000'000;

} // namespace

using ptx_sim::Fault;

Wave::Wave(Workgroup& group, int index, int waves)
    : group(group), index(index), lanes(group.program.chip.wave), agent(ptx_sim::Agent(index)),
      copies(ptx_sim::Agent(waves + index)), known(size_t(2 * waves)),
      constants_(group.program.constants.data()), all_(lanes == 64 ? ~uint64_t(0) : 0xffffffffu),
      registers_(size_t(group.program.registers) * size_t(lanes), kPoison) {}

const Program& Wave::group_program() const { return group.program; }

void Wave::start(uint32_t threads) {
  const uint32_t first = uint32_t(index * lanes), count = std::min(uint32_t(lanes), threads - first);
  live = active = count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1;
  ways_ = {{active, 0, -1}};
  next_ = group.program.blocks[0].first;
  state = State::ready;
  steps_ = 0;
  private_memory.assign(size_t(group.program.private_bytes) * size_t(lanes), 0xff);
}

void Wave::run() {
  const std::vector<Instruction>& code = group.program.code;
  while (state == State::ready) {
    at = &code[next_++];
    at->run(*this, *at);
    if (++steps_ > kMostSteps) throw Fault("the kernel does not end");
  }
}

void Wave::move(const Edge& edge, uint64_t mask) {
  const auto copy = [&](uint32_t to, const uint64_t* from) {
    uint64_t* out = registers_.data() + size_t(to) * size_t(lanes);
    for (int l = 0; l < lanes; ++l)
      if (mask >> l & 1) out[l] = from[l];
  };
  if (edge.staged) {
    staging_.clear();
    for (const Move& m : edge.moves)
      staging_.insert(staging_.end(), in(m.from), in(m.from) + size_t(m.from.count) * size_t(lanes));
  }
  const uint64_t* staged = staging_.data();
  for (const Move& m : edge.moves)
    for (uint32_t c = 0; c < m.from.count; ++c) {
      copy(m.to + c, edge.staged ? staged : in(m.from, c));
      staged += edge.staged ? lanes : 0;
    }
}

void Wave::branch(const Instruction& branch, const std::vector<uint64_t>& masks) {
  std::vector<Entry> taken; // edges into one block are one way
  const int32_t join = group.program.blocks[branch.block].join;
  for (size_t i = 0; i < masks.size(); ++i) {
    if (!masks[i]) continue;
    const Edge& edge = branch.edges[i];
    move(edge, masks[i]);
    const auto same =
        std::find_if(taken.begin(), taken.end(), [&](const Entry& e) { return e.block == edge.block; });
    if (same == taken.end())
      taken.push_back({masks[i], edge.block, join});
    else
      same->mask |= masks[i];
  }
  if (taken.size() == 1) {
    ways_.back().block = taken[0].block;
    return settle();
  }
  if (join < 0 || join == ways_.back().join)
    ways_.pop_back();
  else
    ways_.back().block = uint32_t(join);
  for (const Entry& e : taken)
    if (int32_t(e.block) != join) ways_.push_back(e);
  settle();
}

void Wave::settle() {
  while (!ways_.empty() && (!ways_.back().mask || int32_t(ways_.back().block) == ways_.back().join))
    ways_.pop_back();
  if (ways_.empty()) {
    state = State::done;
    group.release_when_all_are_here();
    return;
  }
  active = ways_.back().mask;
  next_ = group.program.blocks[ways_.back().block].first;
}

void Wave::leave() {
  live &= ~active;
  for (Entry& e : ways_) e.mask &= live;
  if (!live && memory_done < last_copy)
    throw Fault(
        "the wave ends while loads to LDS are under way: it may be another workgroup's when they arrive");
  settle();
}

void Wave::expect_together(const char* what) const {
  if (active != live)
    throw Fault(std::string(what) + " in divergent control flow: only " +
                std::to_string(std::popcount(active)) + " of " + std::to_string(std::popcount(live)) +
                " lanes are here");
}

uint64_t Wave::uniform(const Operand& o, const char* what, uint32_t component) const {
  const uint64_t* x = in(o, component);
  const uint64_t first = x[first_active()];
  for (int l = 0; l < lanes; ++l)
    if (is_active(l) && x[l] != first)
      throw Fault(std::string(what) + " is not the same for all lanes of the wave");
  return first;
}

void Wave::wait(const WaitCount& w) {
  if (w.lds < lds_clock - lds_done) lds_done = lds_clock - w.lds;
  if (w.vector_memory < memory_clock - memory_done) memory_done = memory_clock - w.vector_memory;
  known.seen[copies] = std::max(known.seen[copies], memory_done);
  order_lanes();
}

ptx_sim::Knowledge Wave::published() const {
  ptx_sim::Knowledge k = known;
  k.seen[agent] = lds_done;
  return k;
}

} // namespace deepgen::amd_sim
