// What the generated functions of a library take: the C types of the operands, and the parameters of the
// short forms.
#pragma once

#include "base/problem/signature.h"

namespace deepgen {

/// "float"; "void" for types that C has no name for (f16, bf16 and the 8-bit floats).
std::string c_type(Type);

/// A parameter of a short form, which sets the field `name` of the struct of arguments.
struct FunctionParameter {
  std::string type, name;
  bool is_matrix = false;
  std::string rows{}, columns{};   ///< of a matrix, as stored: numbers, or with sizes of the call
  std::string leading_dimension{}; ///< of a matrix: its field
};
/// What a call must pass: sizes that have a range, then in the signature's order inputs, then outputs.
std::vector<FunctionParameter> function_parameters(const Problem&);
/// "deepgen_gemm_args"
std::string args_type(const Problem&);
std::string declared(const std::vector<FunctionParameter>&); ///< "const float* a, const float* b, float* d"
std::string passed(const std::vector<FunctionParameter>&);   ///< "a, b, d"
/// "args.a = a; args.b = b; args.d = d"
std::string assigned(const std::vector<FunctionParameter>&);

} // namespace deepgen
