// Chip: what the simulator has to know about one gfx target.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace deepgen::amd_sim {

/// Counters of operations under way that an instruction waits for: at most so many may be left.
struct WaitCount {
  static constexpr uint32_t any = ~0u;
  uint32_t vector_memory = any; ///< vmcnt, loadcnt: loads from global memory, also those into LDS
  uint32_t lds = any;           ///< lgkmcnt, dscnt
};

struct Chip {
  std::string arch;
  int major = 9;
  int wave = 64;
  bool cdna4 = false; ///< gfx950
  /// The backend itself waits for everything ahead of s_barrier, as the hardware cannot take an exception
  /// there ("back-off barrier"); on all later chips the kernel has to.
  bool waits_at_barrier = false;
  /// fp8 without negative zero and infinity (gfx942); others have the OCP formats.
  bool fnuz = false;
  bool stores_counted_apart = false; ///< vscnt
  /// Matrix and dot instructions of f16 and bf16 take subnormal operands for zeros, and write zeros for
  /// subnormal sums (MIOpen's documents, "MI200 matrix fused multiply-add behavior specifics").
  bool flushes = false;

  /// Throws Fault for what is no gfx target.
  explicit Chip(const std::string& arch);
  /// What the immediate of s_waitcnt says.
  WaitCount decode_waitcnt(uint32_t immediate) const;

  /// Lanes whose LDS accesses of so many bytes are served in the same clock when they do not conflict.
  struct Phases {
    uint32_t banks = 32;
    std::vector<uint64_t> lanes;
  };
  Phases lds_phases(uint32_t bytes, bool write) const;
};

} // namespace deepgen::amd_sim
