// A kernel's code image made callable in this process.
#pragma once

#include "base/kernel/kernel.h"
#include "runtime/include/deepgen/kernel_abi.h"

#include <array>

namespace deepgen {

/// What a call of a kernel gets, by deepgen_arg; slots that the operator does not have are 0. Those of the
/// tiles are filled from TileRanges.
using SlotValues = std::array<uint64_t, DEEPGEN_ARG_COUNT>;
inline uint64_t argument(const void* p) { return uint64_t(reinterpret_cast<uintptr_t>(p)); }
/// The bits of a scalar, in the low bytes.
uint64_t argument(double value, Type);

/// Tiles [m0, m1) x [n0, n1) of the batch entries [b0, b1).
struct TileRanges {
  int64_t m0 = 0, m1 = 0, n0 = 0, n1 = 0, b0 = 0, b1 = 0;
};

/// The image lives in its own pages, which are first written, then made executable, never both.
class LoadedKernel {
public:
  /// Throws Error for an argument name that kernel_abi.h does not have, or an entry outside the code.
  explicit LoadedKernel(const Kernel& kernel);
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&& other) noexcept;
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  TileRanges full_range() const {
    return {0, tiles_[0], 0, tiles_[1], 0, tiles_[2]};
  } ///< of the largest call
  /// Of the call with these sizes, where the kernel is of a problem with ranges.
  TileRanges full_range(const SlotValues&) const;
  /// The argument block of a call, in the kernel's slot order; for calls in a loop.
  std::vector<uint64_t> arguments(SlotValues values, const TileRanges& ranges) const;
  void call(const std::vector<uint64_t>& arguments) const { entry_(arguments.data()); }
  void call(const SlotValues& values, const TileRanges& ranges) const { call(arguments(values, ranges)); }
  void call(const SlotValues& values) const { call(values, full_range(values)); }

private:
  void* pages_ = nullptr;
  size_t bytes_ = 0;
  deepgen_cpu_entry entry_ = nullptr;
  std::vector<deepgen_arg> slots_;
  std::array<int64_t, 3> tiles_; ///< along M, N and the batch
  std::array<SizeRule, 3> rules_;
};

} // namespace deepgen
