// Lds: a workgroup's local data share. Races between waves are found by vector clocks (ptx_sim's
// SharedMemory); lanes of one wave that read each other's writes need a fence or barrier between, as the
// compiler may reorder what one lane does.
#pragma once

#include "tests/amd_sim/machine/chip.h"
#include "tests/ptx_sim/machine/shared_memory.h"

#include <map>

namespace deepgen::amd_sim {

struct Instruction;

/// Clocks that the accesses of one instruction have taken, and would have taken without bank conflicts.
struct BankCount {
  uint64_t accesses = 0, clocks = 0, ideal = 0;
  uint32_t bytes = 0;
  bool write = false;
  double factor() const { return ideal ? double(clocks) / double(ideal) : 1; }
};

class Lds {
public:
  Lds(const Chip& chip, size_t bytes, size_t waves)
      : memory_(bytes, waves), chip_(chip), writers_(memory_.size()) {}

  void start_group();
  size_t size() const { return memory_.size(); }
  const uint8_t* read(uint64_t offset, size_t count, const ptx_sim::Access&, int lane, uint32_t epoch);
  uint8_t* write(uint64_t offset, size_t count, const ptx_sim::Access&, int lane, uint32_t epoch);
  const uint8_t* peek(uint64_t offset) const { return memory_.peek(offset); }
  /// Of one instruction: the lanes' offsets.
  void count_banks(const Instruction&, const uint64_t* offsets, uint64_t lanes, uint32_t bytes, bool write);
  const std::map<const Instruction*, BankCount>& banks() const { return banks_; }

private:
  struct LaneWriter {
    ptx_sim::Agent agent = ~0u;
    uint32_t epoch = 0;
    int32_t lane = 0;
  };
  ptx_sim::SharedMemory memory_;
  const Chip& chip_;
  std::vector<LaneWriter> writers_;
  std::map<const Instruction*, BankCount> banks_;
};

} // namespace deepgen::amd_sim
