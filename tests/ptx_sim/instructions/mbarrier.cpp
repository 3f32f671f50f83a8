#include "tests/ptx_sim/machine/mbarrier.h"

#include "tests/ptx_sim/machine/block.h"
#include "tests/ptx_sim/program/decode.h"
#include "tests/ptx_sim/program/fault.h"

namespace deepgen::ptx_sim {

void Mbarrier::arrive(const Knowledge& known, uint32_t arrivals) {
  if (arrivals > pending)
    throw Fault("an mbarrier of " + std::to_string(count) + " arrivals gets more in one phase");
  pending -= arrivals;
  arrived.join(known);
}

bool Mbarrier::complete() {
  if (pending || bytes) return false;
  done.join(arrived);
  done.learn(agent, clock());
  arrived = Knowledge(done.seen.size());
  ++completed;
  pending = count;
  return true;
}

Mbarrier& Block::mbarrier_at(uint64_t offset, const Access& access) {
  auto found = mbarriers.find(offset);
  if (found == mbarriers.end()) throw Fault("no mbarrier at shared address " + std::to_string(offset));
  shared.read(offset, 8, access); // its initialisation must be known
  return found->second;
}

void Cluster::settle(Mbarrier& barrier) {
  if (barrier.complete()) ++version;
}

namespace {

uint64_t address_of(const Warp& w, const Operand& o, int lane) { return w.in(o)[lane] + uint64_t(o.offset); }

/// Calls `body(barrier, lane)` for each active lane.
template <typename Body>
void for_each_lane(Warp& w, const Operand& address, const Body& body) {
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    uint64_t offset;
    Block& block = w.block.cluster.block_of(w.block, address_of(w, address, l), offset);
    block.check_alive();
    body(block.mbarrier_at(offset, w.access()), l);
  }
}

void initialise(Warp& w, const Instruction& in) {
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    const uint64_t offset = address_of(w, in.at(0), l);
    if (offset % 8) throw Fault("an mbarrier at the odd address " + std::to_string(offset));
    w.block.shared.write(offset, 8, w.access());
    Cluster& cluster = w.block.cluster;
    auto [place, added] = w.block.mbarriers.try_emplace(offset);
    Mbarrier& b = place->second;
    const size_t agents = w.known.seen.size();
    if (added) b.agent = cluster.next_mbarrier++;
    if (b.agent >= agents) throw Fault("more mbarriers than the simulator follows");
    b.count = b.pending = uint32_t(w.in(in.at(1))[l]);
    if (b.count == 0) throw Fault("an mbarrier of no arrivals");
    b.first_clock = std::max(b.first_clock + b.completed, cluster.all.seen[b.agent]);
    b.completed = 0, b.bytes = 0;
    b.arrived = b.done = Knowledge(agents);
  }
}

void invalidate(Warp& w, const Instruction& in) {
  for_each_lane(w, in.at(0), [](Mbarrier& b, int) {
    if (b.bytes) throw Fault("an mbarrier is invalidated while copies are under way");
  });
}

/// At another block's mbarrier: some time later, when that block has to be there still.
void arrive_later(Warp& w, Block& block, uint64_t offset, uint32_t count) {
  block.check_alive();
  block.mbarrier_at(offset, w.access());
  w.block.cluster.landings.push_back({&w, [&block, offset, count, known = w.known] {
                                        block.check_alive();
                                        Mbarrier& b = block.mbarriers.at(offset);
                                        b.arrive(known, count);
                                        block.cluster.settle(b);
                                      }});
}

/// mbarrier.arrive{.expect_tx} {state,} [address]{, count or bytes}; in.flag: expects bytes; in.kind: the
/// address's group. Of another block's there is no state.
void arrive(Warp& w, const Instruction& in) {
  uint64_t state[32] = {};
  for (int l = 0; l < 32; ++l) {
    if (!w.is_active(l)) continue;
    const uint64_t operand = in.groups() > size_t(in.kind + 1) ? w.in(in.at(size_t(in.kind + 1)))[l] : 1;
    const uint32_t count = in.flag ? 1 : uint32_t(operand);
    uint64_t offset;
    Block& block = w.block.cluster.block_of(w.block, address_of(w, in.at(in.kind), l), offset);
    if (&block != &w.block && in.flag) throw Fault("bytes are expected at another block's mbarrier");
    if (&block != &w.block) {
      arrive_later(w, block, offset, count);
      continue;
    }
    Mbarrier& b = block.mbarrier_at(offset, w.access());
    if (in.flag) b.expect(int64_t(uint32_t(operand)));
    state[l] = b.completed;
    b.arrive(w.known, count);
    w.block.cluster.settle(b);
  }
  w.release();
  if (in.kind == 1) w.put(in.at(0), state);
}

void expect(Warp& w, const Instruction& in) {
  for_each_lane(w, in.at(0), [&](Mbarrier& b, int l) { b.expect(int64_t(uint32_t(w.in(in.at(1))[l]))); });
}

/// All earlier cp.async of these lanes arrive when they are done; without .noinc they are expected on top.
void arrive_with_copies(Warp& w, const Instruction& in) {
  Knowledge after = w.known;
  after.learn(w.copies, w.copy_group++);
  for_each_lane(w, in.at(0), [&](Mbarrier& b, int) {
    if (!in.flag) ++b.pending;
    b.arrive(after, 1);
    w.block.cluster.settle(b);
  });
  w.release();
}

/// {try,test}_wait{.parity} p, [address], parity or state; in.flag: parity.
void test(Warp& w, const Instruction& in) {
  uint64_t passed[32] = {};
  bool all = true;
  Knowledge learnt(w.known.seen.size());
  for_each_lane(w, in.at(1), [&](Mbarrier& b, int l) {
    const uint64_t which = w.in(in.at(2))[l];
    passed[l] = in.flag ? (b.completed & 1) != (which & 1) : b.completed > which;
    all &= passed[l];
    if (passed[l]) learnt.join(b.done);
  });
  w.known.join(learnt);
  w.put(in.at(0), passed);
  if (!all) w.give_way();
}

} // namespace

bool decode_mbarrier(const Opcode& op, Instruction& in) {
  if (op.text.starts_with("cp.async.mbarrier.arrive")) {
    in.run = arrive_with_copies, in.flag = op.has("noinc");
    return true;
  }
  if (op.name() != "mbarrier") return false;
  const std::string& verb = op.parts.at(1);
  if (verb == "init")
    in.run = initialise;
  else if (verb == "inval")
    in.run = invalidate;
  else if (verb == "expect_tx")
    in.run = expect;
  else if (verb == "arrive" && !op.has("noComplete")) {
    in.run = arrive, in.flag = op.has("expect_tx");
    in.kind = in.first_is_address ? 0 : 1;
  } else if (verb == "try_wait" || verb == "test_wait")
    in.run = test, in.flag = op.has("parity");
  return in.run != nullptr;
}

} // namespace deepgen::ptx_sim
