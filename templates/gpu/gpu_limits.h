// What a multiprocessor of a GPU offers to the blocks that run on it.
#pragma once

#include "base/kernel/amd.h"
#include "templates/core/sizes.h"

namespace deepgen {

struct GpuLimits {
  explicit GpuLimits(const std::string& arch) : resident(resident_threads(compute_capability(arch))) {
    const AmdArch* amd = find_amd(arch);
    if (!amd) return;
    // Half of an SIMD's registers at most, so that two waves hide each other's latencies; vector instructions
    // see 256.
    most_registers = std::min<int64_t>(256, amd->registers / 2);
    registers = amd->registers * amd->wave * AmdArch::simds, resident = amd->threads();
    granule = amd->granule, kept = 0, wave = amd->wave;
  }
  int64_t resident; ///< threads
  int64_t registers = 65536;
  int64_t most_registers = 255; ///< of a thread
  int64_t granule = 8;          ///< of a thread's registers
  int64_t kept = 1024;          ///< bytes of shared memory of each block that the system keeps
  int64_t wave = 32;
};

} // namespace deepgen
