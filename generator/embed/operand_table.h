// A problem's operands as the runtime sees them: the table of a generated library's function.
#pragma once

#include "base/problem/signature.h"
#include "runtime/include/deepgen/kernel_abi.h"

#include <array>
#include <vector>

namespace deepgen {

/// One row an operand, in the order of signature(). Throws Error for an operand whose name is no slot or no
/// field of the operator's struct of arguments: a defect.
std::vector<deepgen_operand> operand_table(const Problem&);
deepgen_op op_of(const Problem&);
/// deepgen_function::sizes.
std::array<deepgen_range, DEEPGEN_SIZES> size_ranges(const Problem&);

} // namespace deepgen
