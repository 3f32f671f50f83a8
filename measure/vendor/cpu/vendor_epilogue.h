// What runs behind a vendor's matrix multiplication on the CPU: the epilogue that a careful user would write
// there.
#pragma once

#include "measure/values/operands.h"

#include <vector>

namespace deepgen {

/// In one pass over D's rows, a piece that a cache keeps at a time, with vectors of the CPU's level.
template <typename T>
class VendorEpilogue {
public:
  /// The buffers must outlive it.
  VendorEpilogue(const Gemm&, const CallBuffers&);
  bool empty() const { return steps_.empty() && !gated_; }
  /// All rows of a batch entry. `sums`: of both weights, where there is a gate.
  void run(int64_t entry, T* d, const T* sums) const;

private:
  struct Step {
    EpilogueOp op;
    const T* data = nullptr;
    int64_t entry = 0, row = 0, column = 0; ///< distances in elements
  };
  void run_piece(int64_t entry, int64_t r, int64_t begin, int64_t count, T* d, const T* sums) const;

  std::vector<Step> steps_;
  bool gated_;
  EpilogueOp gate_ = EpilogueOp::relu;
  int64_t m_, n_, ldd_;
  T low_, high_;
};

} // namespace deepgen
