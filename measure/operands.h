// The operands of an epilogue, as data, and what its steps compute.
#pragma once

#include "measure/loader.h"

namespace deepgen {

/// An operand that lies in memory; the bounds of clamp are scalars and not among these.
struct Operand {
  /// Values for each n, each m, each [m, n] of each batch entry, or one.
  enum Shape { column, row, matrix, single };

  EpilogueOp op;
  const char* name; ///< as in kernel_abi.h
  Shape shape;
  const void* CallBuffers::* data;
  int64_t CallBuffers::* ld; ///< of matrices, else null
  int64_t CallBuffers::* stride;

  int64_t rows(const Problem& p) const;    ///< of one batch entry, as stored
  int64_t columns(const Problem& p) const; ///< of one batch entry, as stored
  /// Values for all batch entries: only matrices have one for each.
  int64_t count(const Problem& p) const;
  /// Where a dense operand has the value for D[entry][m, n].
  int64_t index(const Problem& p, int64_t entry, int64_t m, int64_t n) const;
};

/// Those of the problem's epilogue, in its order.
std::vector<Operand> operands_of(const Problem& p);

/// One step in f64; `y` is its operand's value, low and high the bounds of clamp.
double apply_step(EpilogueOp op, double x, double y, double low, double high);

} // namespace deepgen
