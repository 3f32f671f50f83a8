#include "tests/amd_sim/machine/lds.h"

#include "tests/ptx_sim/program/fault.h"

#include <algorithm>
#include <set>

namespace deepgen::amd_sim {
namespace {

/// Clocks for one phase: of all banks, the one with the most words wanted.
uint64_t phase_clocks(const Chip::Phases& phases, uint64_t lanes, const uint64_t* offsets, uint32_t skip,
                      uint32_t bytes) {
  std::map<uint64_t, std::set<uint64_t>> words;
  uint64_t most = 0;
  for (int l = 0; l < 64; ++l) {
    if (!(lanes >> l & 1)) continue;
    const uint64_t first = (offsets[l] + skip) / 4, last = (offsets[l] + skip + bytes - 1) / 4;
    for (uint64_t word = first; word <= last; ++word) {
      std::set<uint64_t>& bank = words[word % phases.banks];
      bank.insert(word);
      most = std::max<uint64_t>(most, bank.size());
    }
  }
  return most;
}

} // namespace

void Lds::start_group() {
  memory_.start_block();
  std::fill(writers_.begin(), writers_.end(), LaneWriter{});
}

const uint8_t* Lds::read(uint64_t offset, size_t count, const ptx_sim::Access& a, int lane, uint32_t epoch) {
  const uint8_t* bytes = memory_.read(offset, count, a);
  for (size_t i = 0; i < count; ++i) {
    const LaneWriter& w = writers_[offset + i];
    if (w.agent == a.agent && w.lane != lane && w.epoch == epoch)
      throw ptx_sim::Fault(
          "LDS race within a wave at byte " + std::to_string(offset + i) + ": lane " + std::to_string(lane) +
          " reads what lane " + std::to_string(w.lane) +
          " has written, with no fence or barrier between; the compiler may reorder the two");
  }
  return bytes;
}

uint8_t* Lds::write(uint64_t offset, size_t count, const ptx_sim::Access& a, int lane, uint32_t epoch) {
  uint8_t* bytes = memory_.write(offset, count, a);
  for (size_t i = 0; i < count; ++i) writers_[offset + i] = {a.agent, epoch, lane};
  return bytes;
}

void Lds::count_banks(const Instruction& in, const uint64_t* offsets, uint64_t lanes, uint32_t bytes,
                      bool write) {
  BankCount& count = banks_[&in];
  count.bytes = bytes, count.write = write, ++count.accesses;
  for (uint32_t skip = 0; skip < bytes; skip += 16) {
    const uint32_t part = std::min(bytes - skip, 16u);
    const Chip::Phases phases = chip_.lds_phases(part, write);
    for (uint64_t mask : phases.lanes) {
      if (!(mask & lanes)) continue;
      count.clocks += phase_clocks(phases, mask & lanes, offsets, skip, part);
      count.ideal += 1;
    }
  }
}

} // namespace deepgen::amd_sim
