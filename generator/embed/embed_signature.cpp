#include "generator/embed/embed_signature.h"

#include "generator/embed/embed_ranges.h"

namespace deepgen {
namespace {

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
  case Type::u8:
    return "uint8_t";
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

std::vector<FunctionParameter> function_parameters(const Problem& p) {
  using Role = Operand::Role;
  std::vector<FunctionParameter> list, out;
  for (const Operand& x : signature(p)) {
    if (!x.required) continue;
    FunctionParameter parameter{x.role == Role::scalar ? "double"
                                : x.role == Role::out  ? c_type(x.type) + "*"
                                                       : "const " + c_type(x.type) + "*",
                                x.name};
    if (x.packed)
      parameter.type = "const void*";
    else if (x.is_matrix())
      parameter = {parameter.type,
                   x.name,
                   true,
                   size_expression(x.rows, x.rows_by, p),
                   size_expression(x.columns, x.columns_by, p),
                   x.leading_dimension()};
    if (x.role == Role::table && p.op() == "gemm")
      list.insert(list.begin() + 2, parameter); // behind A and B
    else
      (x.role == Role::out ? out : list).push_back(parameter);
  }
  list.insert(list.end(), out.begin(), out.end());
  std::vector<FunctionParameter> sizes;
  for (const RangeOfSize& size : ranges_of(p)) sizes.push_back({"int64_t", size.name});
  list.insert(list.begin(), sizes.begin(), sizes.end());
  return list;
}

std::string args_type(const Problem& p) { return "deepgen_" + p.op() + "_args"; }

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
