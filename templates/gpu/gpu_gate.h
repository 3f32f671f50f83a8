// A gate on GPUs: from the sums of both weights to a product that the epilogue takes as any other.
#pragma once

#include "templates/gpu/gpu_epilogue.h"
#include "templates/ir/gpu_ir.h"

#include <optional>

namespace deepgen {

/// gate(alpha g) * (alpha u) of sums g and u, in the type in which the epilogue computes.
class GpuGate {
public:
  GpuGate(GpuIr&, const Gemm&, const KernelArguments&);

  Value product(Value gate, Value up) const;
  /// The same for each fragment of `gate` and the one of `up` with the same columns of D.
  std::vector<Fragment> products(llvm::ArrayRef<Fragment> gate, llvm::ArrayRef<Fragment> up) const;

  /// What is left to do with products: the problem without its gate and with sums of their type, and alpha
  /// is 1.
  static Gemm rest(const Gemm&);
  KernelArguments rest(const KernelArguments&) const;

private:
  GpuIr& ir_;
  const Gemm problem_;
  const Value alpha_;
};

/// A thread's sums; with a gate the products of two, which are made when they are asked for: all at once they
/// would take registers that the sums have.
class GatedSums {
public:
  GatedSums(mlir::ValueRange sums) : sums_(sums) {}
  GatedSums(const GpuGate& gate, mlir::ValueRange sums, mlir::ValueRange up)
      : gate_(gate), sums_(sums), up_(up) {}

  bool gated() const { return gate_.has_value(); }
  Value operator[](size_t i) const { return gate_ ? gate_->product(sums_[i], up_[i]) : sums_[i]; }

private:
  const std::optional<GpuGate> gate_;
  const Values sums_, up_;
};

} // namespace deepgen
