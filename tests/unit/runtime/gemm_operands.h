// The operands of a function as tests describe one: those of a GEMM, which a test may change.
#pragma once

#include "generator/embed/operand_table.h"

#include <algorithm>
#include <stdexcept>

namespace deepgen {

class RuntimeOperands {
public:
  /// Points the function to the operands of the problem, of which accumulator and alignment need not be set.
  void set(deepgen_function& f, Gemm p) {
    complete(p);
    problem = p, rows_ = operand_table(p);
    f.op = DEEPGEN_OP_GEMM, f.operands = rows_.data(), f.operand_count = uint32_t(rows_.size()),
    f.work = p.work();
    const auto sizes = size_ranges(p);
    std::copy(sizes.begin(), sizes.end(), f.sizes);
  }
  /// The same for the last problem with a change.
  template <typename Change>
  void change(deepgen_function& f, Change change) {
    change(problem);
    set(f, problem);
  }
  deepgen_operand& operator[](deepgen_arg slot) {
    for (deepgen_operand& x : rows_)
      if (x.slot == slot) return x;
    throw std::out_of_range("no such operand");
  }
  std::vector<deepgen_operand>& rows() { return rows_; }
  void set_scalar_type(deepgen_type type) {
    for (deepgen_operand& x : rows_)
      if (x.flags & DEEPGEN_OPERAND_SCALAR) x.type = uint8_t(type);
  }

  Gemm problem;

private:
  std::vector<deepgen_operand> rows_;
};

} // namespace deepgen
