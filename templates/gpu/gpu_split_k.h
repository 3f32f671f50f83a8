// Split-K on GPUs: several blocks share the sum over K of one tile. Each stores its partial sums in the
// workspace, and a second launch adds them up in a fixed order and applies the epilogue, so that results do
// not vary from call to call.
#pragma once

#include "base/kernel/kernel.h"
#include "templates/gpu/gpu_epilogue.h"

namespace deepgen {

/// Partial sums as the workspace holds them: [split][weight][batch entry][row][column], rows padded to 16
/// bytes, of the accumulator's type. There are two weights with a gate, which is the second launch's.
class GpuSplitK {
public:
  GpuSplitK(const Gemm&, int64_t splits);

  int64_t workspace() const; ///< bytes
  /// The same of a call; only where the problem has ranges of M or the batch.
  SizeRule workspace_rule() const;
  /// Bytes that the partial sums make a call move, twice over: written and read.
  double traffic() const { return 2.0 * double(workspace()); }

  /// For the main kernel, in place of GpuEpilogue::store. `entry` may be null without a batch. `weight`: 1
  /// for sums of the one that is not the gate's.
  void store(GpuIr&, const KernelArguments&, Value split, Value entry, llvm::ArrayRef<Fragment>, Bounds,
             int64_t weight = 0) const;

  /// Adds the entry `deepgen_reduce` to the module and returns its launch. From sm_90 on it starts while the
  /// main kernel ends (main kernels should call launch_dependents() before they store) and waits for it
  /// itself.
  Launch emit_reduce(GpuIr&, const std::vector<std::string>& arguments, int64_t align_d) const;
  /// Where there are several splits: that launch, behind the kernel's others, and the workspace for it.
  void add_reduce(GpuIr&, Kernel&) const;

private:
  void reduce(GpuIr&, const KernelArguments&, int64_t align_d) const;
  int64_t lanes() const;                            ///< columns that one thread of the reduction sums
  SizeValue vectors(GpuIr&, const GpuSizes&) const; ///< of the whole output
  int64_t most_vectors() const;
  int64_t weights() const { return problem_.gate ? 2 : 1; }
  int64_t most_plane() const;                     ///< bytes of one weight's sums of a split
  SizeValue plane(GpuIr&, const GpuSizes&) const; ///< of a call
  Value sum_up(GpuIr&, const GpuSizes&,
               Value first) const; ///< over the splits, from the first one's address on
  Type type() const { return problem_.accumulate; }

  const Gemm problem_;
  const int64_t splits_;
  const int64_t pitch_; ///< of a row, in elements
};

/// That of a config with the parameter `splits`; 0 when it does not split.
int64_t split_workspace(const Gemm&, const Config&);

} // namespace deepgen
