// The caller's floating-point state on the threads that compute for it: with another rounding mode, or with
// subnormals flushed on one thread alone, the bits of a result would depend on who computed it. Internal.
#pragma once

#include "runtime/core/abi.h"

#include <atomic>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// MXCSR of the thread that makes the call: rounding, FTZ, DAZ, traps. Kernels use no x87 instruction.
class FloatingPoint {
public:
  FloatingPoint() : control_(read() & ~kFlags) {}

  /// While in scope the thread computes with the caller's state; then it has its own again.
  class Scope {
  public:
    explicit Scope(FloatingPoint& caller) : caller_(caller), own_(read()) { write(caller.control_); }
    ~Scope() {
      const uint32_t raised = read() & kFlags;
      if (raised & ~caller_.raised_.load(std::memory_order_relaxed))
        caller_.raised_.fetch_or(raised, std::memory_order_relaxed);
      write(own_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

  private:
    FloatingPoint& caller_;
    const uint32_t own_;
  };

  /// For the caller, when all is done: fetestexcept() tells what it would after a call on one thread.
  void take_flags() const { write(read() | raised_.load(std::memory_order_relaxed)); }

private:
#if defined(__x86_64__)
  static constexpr uint32_t kFlags = 0x3f;
  static uint32_t read() { return __builtin_ia32_stmxcsr(); }
  static void write(uint32_t mxcsr) { __builtin_ia32_ldmxcsr(mxcsr); }
#else
  static constexpr uint32_t kFlags = 0; // there are no kernels for other CPUs
  static uint32_t read() { return 0; }
  static void write(uint32_t) {}
#endif

  const uint32_t control_;
  std::atomic<uint32_t> raised_{0};
};

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
