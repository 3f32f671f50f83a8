// What the generated functions of a library take: the C types of the operands, and the parameters of the
// short forms.
#pragma once

#include "base/problem.h"

namespace deepgen {

/// "float"; "void" for types that C has no name for (f16, bf16 and the 8-bit floats).
std::string c_type(Type);

/// One operand of an epilogue; `name` is its field of deepgen_gemm_args.
struct SignatureOperand {
  enum Shape { per_column, per_row, matrix, one_value };
  EpilogueOp op;
  const char* name;
  Shape shape;
};
/// In the order of EpilogueOp, whatever the order of the problem's steps. The bounds of clamp are not among
/// them.
std::vector<SignatureOperand> epilogue_operands(const Problem&);
Type type_of(const SignatureOperand&, const Problem&);

/// A parameter of a short form, which sets the field `name` of deepgen_gemm_args.
struct FunctionParameter {
  std::string type, name;
  bool is_matrix = false;
  int64_t rows = 0, columns = 0;   ///< of a matrix, as stored
  std::string leading_dimension{}; ///< of a matrix: its field
};
/// a, b, the operands of the epilogue in the order of EpilogueOp (those of clamp are clamp_low, clamp_high),
/// d.
std::vector<FunctionParameter> function_parameters(const Problem&);
std::string declared(const std::vector<FunctionParameter>&); ///< "const float* a, const float* b, float* d"
std::string passed(const std::vector<FunctionParameter>&);   ///< "a, b, d"
/// "args.a = a; args.b = b; args.d = d"
std::string assigned(const std::vector<FunctionParameter>&);

} // namespace deepgen
