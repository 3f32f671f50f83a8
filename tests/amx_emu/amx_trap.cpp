#include "tests/amx_emu/amx_trap.h"

#include <ucontext.h>

namespace deepgen::amx {
namespace {

Trap* active = nullptr;

/// ucontext's numbers of the registers, by those of machine code.
constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

void handle(int, siginfo_t*, void* context) {
  greg_t* saved = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const uint8_t*>(saved[REG_RIP]);
  const std::optional<Instruction> x = decode(at);
  if (!x) { // as if nobody had handled it: the instruction faults again
    std::signal(SIGILL, SIG_DFL);
    return;
  }
  Registers registers;
  for (size_t i = 0; i < 16; ++i) registers.general[i] = uint64_t(saved[kRegisters[i]]);
  registers.next = uint64_t(saved[REG_RIP]) + uint64_t(x->length);
  const char* wrong = active->machine.step(*x, registers);
  if (!active->wrong) active->wrong = wrong;
  saved[REG_RIP] = greg_t(registers.next);
}

} // namespace

Trap::Trap() {
  active = this;
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &before_);
}

Trap::~Trap() {
  sigaction(SIGILL, &before_, nullptr);
  active = nullptr;
}

} // namespace deepgen::amx
