// Workspace that calls share: address space reserved at start-up, so that no call allocates. Internal.
#pragma once

#include "runtime/core/abi.h"

#include <cstddef>
#include <cstdint>

namespace deepgen::scratch {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// Makes sure that slots of at least `bytes` exist. False when the address space cannot be had.
bool reserve(size_t bytes);

/// Gives back every reservation of which no slot is in use. No call may be about to take one.
void release();

/// After fork(2) the child has one thread, and no slot is in use.
void reset_after_fork();

/// One slot while in scope. Spins when all are taken, which ends: whoever holds one computes and takes no
/// other.
class Slot {
public:
  explicit Slot(size_t bytes); ///< takes nothing when bytes is 0; reserve(bytes) must have succeeded
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  void* data() const { return data_; }

private:
  void* data_ = nullptr;
  void* flag_ = nullptr;
};

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::scratch
