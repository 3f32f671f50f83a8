#include "generator/embed_signature.h"

namespace deepgen {
namespace {

constexpr SignatureOperand kOperands[] = {{EpilogueOp::bias, "bias", SignatureOperand::per_column},
                                          {EpilogueOp::bias_row, "bias_row", SignatureOperand::per_row},
                                          {EpilogueOp::residual, "residual", SignatureOperand::matrix},
                                          {EpilogueOp::multiply, "multiplier", SignatureOperand::matrix},
                                          {EpilogueOp::scale_a, "scale_a", SignatureOperand::one_value},
                                          {EpilogueOp::scale_b, "scale_b", SignatureOperand::one_value},
                                          {EpilogueOp::scale_row, "scale_row", SignatureOperand::per_row},
                                          {EpilogueOp::scale_col, "scale_col", SignatureOperand::per_column},
                                          {EpilogueOp::scale_d, "scale_d", SignatureOperand::one_value}};

bool is_scale(EpilogueOp op) { return op >= EpilogueOp::scale_a; }

template <typename Text>
std::string joined(const std::vector<FunctionParameter>& parameters, const char* between, Text text) {
  std::string list;
  for (const FunctionParameter& p : parameters) list += (list.empty() ? "" : between) + text(p);
  return list;
}

} // namespace

std::string c_type(Type type) {
  switch (type) {
  case Type::f32:
  case Type::tf32:
    return "float";
  case Type::f64:
    return "double";
  case Type::i8:
    return "int8_t";
  case Type::i32:
    return "int32_t";
  case Type::f16:
  case Type::bf16:
  case Type::e4m3:
  case Type::e5m2:
    break;
  }
  return "void";
}

std::vector<SignatureOperand> epilogue_operands(const Problem& p) {
  std::vector<SignatureOperand> operands;
  for (const SignatureOperand& operand : kOperands)
    if (p.has(operand.op)) operands.push_back(operand);
  return operands;
}

Type type_of(const SignatureOperand& operand, const Problem& p) {
  return is_scale(operand.op) ? p.scale_type() : p.epilogue_type();
}

std::vector<FunctionParameter> function_parameters(const Problem& p) {
  auto in = [](Type type) { return "const " + c_type(type) + "*"; };
  std::vector<FunctionParameter> list = {{in(p.a), "a", true, p.a_rows(), p.a_columns(), "lda"},
                                         {in(p.b), "b", true, p.b_rows(), p.b_columns(), "ldb"}};
  if (p.groups) list.push_back({"const int32_t*", "offsets"});
  bool clamp = p.has(EpilogueOp::clamp);
  auto add_clamp = [&] {
    if (clamp) list.insert(list.end(), {{"double", "clamp_low"}, {"double", "clamp_high"}});
    clamp = false;
  };
  for (const SignatureOperand& operand : epilogue_operands(p)) {
    if (operand.op > EpilogueOp::clamp) add_clamp();
    FunctionParameter parameter{in(type_of(operand, p)), operand.name};
    if (operand.shape == SignatureOperand::matrix)
      parameter = {parameter.type, operand.name, true, p.m, p.n, std::string("ld_") + operand.name};
    list.push_back(parameter);
  }
  add_clamp();
  list.push_back({c_type(p.d) + "*", "d", true, p.m, p.n, "ldd"});
  return list;
}

std::string declared(const std::vector<FunctionParameter>& parameters) {
  return joined(parameters, ", ", [](const FunctionParameter& p) { return p.type + " " + p.name; });
}

std::string passed(const std::vector<FunctionParameter>& parameters) {
  return joined(parameters, ", ", [](const FunctionParameter& p) { return p.name; });
}

std::string assigned(const std::vector<FunctionParameter>& parameters) {
  // Not by commas: clang's -Wcomma warns of these in the user's own compile.
  return joined(parameters, "; ",
                [](const FunctionParameter& p) { return "args." + p.name + " = " + p.name; });
}

} // namespace deepgen
