// What the calls of a race compute with: sets of operands that take turns, so that none is found in the
// caches. A class for each operator.
#pragma once

#include "base/problem/signature.h"
#include "measure/gpu/cuda_launch.h"
#include "measure/gpu/toolbox/cuda_operands.h"
#include "measure/race/options.h"
#include "measure/values/attention/attention_inputs.h"
#include "measure/values/groups.h"

#include <memory>
#include <vector>

namespace deepgen::cuda {

class RingSets {
public:
  virtual ~RingSets() = default;
  virtual int64_t count() const = 0;
  /// Sets that differ in kind, and take turns.
  virtual int64_t kinds() const { return 1; }
  /// A call of a kernel on the operands of one set.
  virtual void enqueue(const LoadedKernel&, int64_t set, Stream) const = 0;
};

/// What sets are made for.
struct RingSpace {
  const Toolbox& tools;
  Caches caches;
  int64_t cache;     ///< bytes of the device's last-level cache
  int64_t memory;    ///< bytes that may be taken
  int64_t workspace; ///< of the kernel that needs most
  uint64_t seed;
};

std::unique_ptr<const RingSets> make_sets(const Problem&, const RingSpace&);

class GemmSets final : public RingSets {
public:
  GemmSets(const Gemm&, const RingSpace&);
  int64_t count() const override { return int64_t(sets_.size()); }
  int64_t kinds() const override;
  void enqueue(const LoadedKernel& kernel, int64_t set, Stream stream) const override {
    kernel.enqueue(sets_[size_t(set)], stream);
  }
  const Gemm& problem() const { return problem_; }
  const std::vector<CallOperands>& all() const { return sets_; }

private:
  void fill(const RingSpace&);
  void share_rows(CallOperands&, Sharing, uint64_t seed);
  Array vector(const Toolbox&, const Operand&, const Values& v);

  Gemm problem_;
  std::vector<Memory> memory_;
  std::vector<CallOperands> sets_;
};

/// Matrices and the scales of rows take turns; scale and bias are the same for all. Warm caches: one set.
class RowsSets final : public RingSets {
public:
  RowsSets(const Rows&, const RingSpace&);
  int64_t count() const override { return int64_t(sets_.size()); }
  void enqueue(const LoadedKernel& kernel, int64_t set, Stream stream) const override {
    kernel.enqueue(sets_[size_t(set)], stream);
  }

private:
  std::vector<Memory> memory_;
  std::vector<RowsOperands> sets_;
};

/// The call that the problem is tuned for, dense. Q, K, V, out and lse take turns.
class AttentionSets final : public RingSets {
public:
  AttentionSets(const Attention&, const RingSpace&);
  int64_t count() const override { return int64_t(sets_.size()); }
  void enqueue(const LoadedKernel& kernel, int64_t set, Stream stream) const override {
    kernel.enqueue(sets_[size_t(set)], stream);
  }
  const Attention& problem() const { return problem_; }
  const std::vector<SlotValues>& all() const { return sets_; }

private:
  /// Memory for an operand of each set; filled where it is an input.
  std::vector<Address> place(const RingSpace&, const deepgen::Operand&, int64_t elements);

  Attention problem_;
  std::vector<Memory> memory_;
  std::vector<SlotValues> sets_;
};

} // namespace deepgen::cuda
