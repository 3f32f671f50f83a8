// The epilogue behind a product of OpenBLAS's, on the elements that a task has. Internal.
#pragma once

#include "runtime/core/arguments.h"
#include "runtime/cpu/epilogue_row.h"

namespace deepgen::blas {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// Rows [m0, m1) and columns [n0, n1) of a batch entry.
struct Block {
  int64_t m0, m1, n0, n1, entry;
};

/// Of a matrix that is read element by element, or of what each row, each column or all of D have.
struct StepOperand {
  const void* data;
  int64_t entry, row, column; ///< distances in elements
};
/// null data: the step has no operand in memory.
StepOperand operand_of(RowStep, const ArgumentValues&);

/// `d`: of the entry. T is float or double.
template <typename T>
void run_steps(const deepgen_vendor_call&, const ArgumentValues&, const Block&, T* d, int64_t ldd);

extern template void run_steps(const deepgen_vendor_call&, const ArgumentValues&, const Block&, float*,
                               int64_t);
extern template void run_steps(const deepgen_vendor_call&, const ArgumentValues&, const Block&, double*,
                               int64_t);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::blas
