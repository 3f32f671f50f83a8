// A kernel's code image made callable in this process.
#pragma once

#include "base/kernel.h"
#include "runtime/include/deepgen/kernel_abi.h"

namespace deepgen {

/// What a call of a kernel gets: typed as the runtime passes it, sizes in elements.
struct CallBuffers {
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
  double alpha = 1, beta = 0;
  void* workspace = nullptr;
  // Of the epilogue.
  const void *bias_row = nullptr, *residual = nullptr, *multiplier = nullptr;
  int64_t ld_residual = 0, stride_residual = 0, ld_multiplier = 0, stride_multiplier = 0;
  const void *scale_a = nullptr, *scale_b = nullptr, *scale_d = nullptr, *scale_row = nullptr,
             *scale_col = nullptr;
  double clamp_low = 0, clamp_high = 0;
};

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

  TileRanges full_range() const { return {0, tiles_m_, 0, tiles_n_, 0, tiles_b_}; }
  /// The argument block of a call, in the kernel's slot order; for calls in a loop.
  std::vector<uint64_t> arguments(const CallBuffers& buffers, const TileRanges& ranges) const;
  void call(const std::vector<uint64_t>& arguments) const { entry_(arguments.data()); }
  void call(const CallBuffers& buffers, const TileRanges& ranges) const { call(arguments(buffers, ranges)); }
  void call(const CallBuffers& buffers) const { call(buffers, full_range()); }

private:
  void* pages_ = nullptr;
  size_t bytes_ = 0;
  deepgen_cpu_entry entry_ = nullptr;
  std::vector<deepgen_arg> slots_;
  Type type_;
  int64_t tiles_m_, tiles_n_, tiles_b_;
};

} // namespace deepgen
