// Branches, barriers and what the threads of a warp do together.
#include "tests/ptx_sim/machine/block.h"
#include "tests/ptx_sim/program/decode.h"
#include "tests/ptx_sim/program/fault.h"

namespace deepgen::ptx_sim {
namespace {

void branch(Warp& w, const Instruction& in) { w.branch(in.target); }
void leave(Warp& w, const Instruction&) { w.exit_lanes(); }

void barrier_arrive(Warp& w, NamedBarrier& b, uint32_t expected) {
  if (b.arrived && b.expected != expected)
    throw Fault("a barrier of " + std::to_string(b.expected) + " threads is used with " +
                std::to_string(expected));
  b.expected = expected;
  b.arrived += 32;
  b.sum.join(w.known);
  w.release();
}

void barrier_complete(Warp& w, NamedBarrier& b) {
  if (b.arrived < b.expected) return;
  for (Warp* other : b.waiting) {
    other->known.join(b.sum);
    other->state = Warp::State::ready;
  }
  b = {0, 0, Knowledge(w.known.seen.size()), {}};
  ++w.block.cluster.version;
}

/// bar.sync id{, threads}; in.flag: only arrives.
void barrier(Warp& w, const Instruction& in) {
  if (!w.gathered()) return;
  const uint64_t id = w.in(in.at(0))[0];
  if (id >= w.block.barriers.size()) throw Fault("no barrier " + std::to_string(id));
  NamedBarrier& b = w.block.barriers[id];
  const auto all = uint32_t(32 * w.block.warps.size());
  const uint32_t expected = in.groups() > 1 ? uint32_t(w.in(in.at(1))[0]) : all;
  if (expected % 32 || expected == 0 || expected > all)
    throw Fault("a barrier of " + std::to_string(expected) + " threads in a block of " + std::to_string(all));
  barrier_arrive(w, b, expected);
  if (!in.flag) w.wait(), b.waiting.push_back(&w);
  barrier_complete(w, b);
}

/// bar.warp.sync, and the first operands of the others: the lanes that take part.
bool mask_gathered(Warp& w, uint64_t mask) { return w.gathered(uint32_t(mask) & w.live); }

void warp_barrier(Warp& w, const Instruction& in) { mask_gathered(w, w.in(in.at(0))[w.first_active()]); }

/// shfl.sync.mode d{|p}, value, lane, clamp, mask; in.kind: the mode's first letter.
void shuffle(Warp& w, const Instruction& in) {
  if (!mask_gathered(w, w.in(in.at(4))[w.first_active()])) return;
  const uint64_t *x = w.in(in.at(1)), *by = w.in(in.at(2)), *c = w.in(in.at(3));
  uint64_t out[32], valid[32];
  for (int l = 0; l < 32; ++l) {
    const int segment = int(c[l] >> 8 & 31), clamp = int(c[l] & 31), b = int(by[l] & 31);
    const int most = (l & segment) | (clamp & ~segment), least = l & segment;
    int from = 0;
    switch (in.kind) {
    case 'u':
      from = l - b, valid[l] = from >= most;
      break;
    case 'd':
      from = l + b, valid[l] = from <= most;
      break;
    case 'b':
      from = l ^ b, valid[l] = from <= most;
      break;
    default:
      from = least | (b & ~segment), valid[l] = from <= most;
    }
    if (!valid[l]) from = l;
    if (w.is_active(l) && !w.is_active(from))
      throw Fault("shfl from lane " + std::to_string(from) + ", which has ended");
    out[l] = x[from];
  }
  w.put(in.at(0), out);
  if (in.count(0) > 1) w.put(in.at(0, 1), valid);
}

/// elect.sync d|p, mask: the lowest lane.
void elect(Warp& w, const Instruction& in) {
  if (!mask_gathered(w, w.in(in.at(1))[w.first_active()])) return;
  uint64_t leader[32], chosen[32];
  for (int l = 0; l < 32; ++l) leader[l] = uint64_t(w.first_active()), chosen[l] = l == w.first_active();
  w.put(in.at(0), leader);
  w.put(in.at(0, 1), chosen);
}

/// vote.sync.{any,all,ballot}, redux.sync.{add,max,min,or,and}: in.kind numbers them.
void reduce(Warp& w, const Instruction& in) {
  const size_t mask_group = in.groups() - 1;
  if (!mask_gathered(w, w.in(in.at(mask_group))[w.first_active()])) return;
  const uint64_t* x = w.in(in.at(1));
  uint64_t any = 0, all = all_lanes, ballot = 0, sum = 0;
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    any |= x[l], all &= x[l], sum += x[l], ballot |= (x[l] & 1) << l;
  }
  const uint64_t results[] = {any & 1, ballot == w.active, ballot, uint32_t(sum), any, all};
  uint64_t out[32];
  for (uint64_t& o : out) o = results[in.kind];
  w.put(in.at(0), out);
}

void wait_for_predecessor(Warp& w, const Instruction&) { w.waited_for_predecessor = true; }

bool decode_together(const Opcode& op, Instruction& in) {
  if (op.name() == "shfl" && op.parts.size() == 4)
    in.run = shuffle, in.kind = uint8_t(op.parts[2][0]);
  else if (op.text == "elect.sync")
    in.run = elect;
  else if (op.text == "vote.sync.any.pred")
    in.run = reduce, in.kind = 0;
  else if (op.text == "vote.sync.all.pred")
    in.run = reduce, in.kind = 1;
  else if (op.text == "vote.sync.ballot.b32")
    in.run = reduce, in.kind = 2;
  else if (op.text == "redux.sync.add.s32" || op.text == "redux.sync.add.u32")
    in.run = reduce, in.kind = 3;
  else if (op.text == "redux.sync.or.b32")
    in.run = reduce, in.kind = 4;
  else if (op.text == "redux.sync.and.b32")
    in.run = reduce, in.kind = 5;
  return in.run != nullptr;
}

} // namespace

bool decode_threads(const Opcode& op, Instruction& in) {
  static constexpr const char* ignored[] = {"nanosleep", "setmaxnreg", "membar", "pragma"};
  if (op.name() == "bra")
    in.run = branch;
  else if (op.text == "ret" || op.text == "exit")
    in.run = leave;
  else if (op.text == "bar.warp.sync")
    in.run = warp_barrier;
  else if (op.name() == "bar" || (op.name() == "barrier" && !op.has("cluster"))) {
    in.run = op.has("sync") || op.has("arrive") ? barrier : nullptr;
    in.flag = op.has("arrive");
  } else if (op.text == "griddepcontrol.wait")
    in.run = wait_for_predecessor;
  else if (op.text == "griddepcontrol.launch_dependents")
    in.run = nothing;
  else if (decode_together(op, in))
    return true;
  else
    for (const char* name : ignored)
      if (op.name() == name) in.run = nothing;
  return in.run != nullptr;
}

} // namespace deepgen::ptx_sim
