// Runs AMX where the CPU or the system refuses it: a handler of SIGILL that does the instruction and goes on
// behind it. Linux refuses tiles to a process that has not asked for them, so this also runs on CPUs that
// have AMX; deepgen::cpu::usable_isa() asks, and must not have been called.
#pragma once

#include "tests/amx_emu/amx_emu.h"

#include <csignal>

namespace deepgen::amx {

/// One at a time; of one thread.
class Trap {
public:
  Trap();
  ~Trap();
  Trap(const Trap&) = delete;

  Machine machine;
  /// What was wrong with the first instruction that could not be done, or null. It was left out, as all such.
  const char* wrong = nullptr;

private:
  struct sigaction before_{};
};

} // namespace deepgen::amx
