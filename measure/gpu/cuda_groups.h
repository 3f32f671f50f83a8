// The operands of one group of rows, as those of a call of its own.
#pragma once

#include "measure/gpu/cuda_launch.h"

namespace deepgen::cuda {

/// Makes it a view of `rows` rows from `row` on; nothing where it is absent.
void take_rows(Array& x, int64_t row, int64_t rows);

/// The same of a step's operand, of which each group may have its own part.
void take_group(Array& x, EpilogueOp op, const Gemm&, int64_t group, int64_t row, int64_t rows);

/// The problem that one group is, with so many rows.
Gemm group_problem(const Gemm&, int64_t rows);

/// Of group number `group` of the rows [row, row + rows).
CallOperands group_operands(const Gemm&, const CallOperands&, int64_t group, int64_t row, int64_t rows);

} // namespace deepgen::cuda
