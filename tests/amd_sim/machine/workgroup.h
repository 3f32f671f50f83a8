// Workgroup: what its waves share while they run.
#pragma once

#include "tests/amd_sim/machine/lds.h"
#include "tests/amd_sim/machine/wave.h"
#include "tests/ptx_sim/machine/global_memory.h"

#include <array>
#include <memory>

namespace deepgen::amd_sim {

struct Workgroup {
  Workgroup(const Program& program, ptx_sim::GlobalMemory& memory, const std::vector<uint8_t>& kernarg,
            uint32_t lds_bytes, int waves)
      : program(program), memory(memory), kernarg(kernarg), lds(program.chip, lds_bytes, size_t(waves)),
        sum(size_t(2 * waves)) {}

  const Program& program;
  ptx_sim::GlobalMemory& memory;
  const std::vector<uint8_t>& kernarg;
  Lds lds;
  std::array<uint32_t, 3> index{}, size{1, 1, 1};
  std::vector<std::unique_ptr<Wave>> waves;
  uint64_t matrix_operations = 0;
  ptx_sim::Knowledge sum; ///< of those that have come to the barrier

  // s_barrier counts waves; those that have ended are not waited for.
  void signal(Wave&);
  void await(Wave&);
  void release_when_all_are_here();
};

} // namespace deepgen::amd_sim
