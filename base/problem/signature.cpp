#include "base/problem/signature.h"

#include <algorithm>
#include <string_view>

namespace deepgen {
namespace {

using Shape = Operand::Shape;

/// An operand of the epilogue.
struct Step {
  EpilogueOp op;
  const char* operand;
  Shape shape;
  bool scale;      ///< of scale_type(), else of epilogue_type()
  bool each_group; ///< one behind the other
};
constexpr Step kSteps[] = {{EpilogueOp::bias, "bias", Shape::per_column, false, true},
                           {EpilogueOp::bias_row, "bias_row", Shape::per_row, false, false},
                           {EpilogueOp::clamp, "clamp_low", Shape::value, true, false},
                           {EpilogueOp::clamp, "clamp_high", Shape::value, true, false},
                           {EpilogueOp::residual, "residual", Shape::matrix, false, false},
                           {EpilogueOp::multiply, "multiplier", Shape::matrix, false, false},
                           {EpilogueOp::scale_a, "scale_a", Shape::value, true, false},
                           {EpilogueOp::scale_b, "scale_b", Shape::value, true, false},
                           {EpilogueOp::scale_row, "scale_row", Shape::per_row, true, false},
                           {EpilogueOp::scale_col, "scale_col", Shape::per_column, true, true},
                           {EpilogueOp::scale_d, "scale_d", Shape::value, true, false}};

Operand operand_of(const Step& step, const Gemm& p) {
  const auto role = step.op == EpilogueOp::clamp ? Operand::Role::scalar : Operand::Role::in;
  Operand x{step.operand, role, step.shape, step.scale ? p.scale_type() : p.epilogue_type()};
  if (step.shape == Shape::matrix) x.rows = p.m, x.columns = p.n, x.entries = p.batch, x.in_place = true;
  if (step.shape == Shape::per_row) x.columns = p.m;
  if (step.shape == Shape::per_column) x.columns = p.n;
  if (std::string_view(step.operand) == "clamp_low") x.limit = Operand::Limit::ascending;
  if (step.each_group) x.entries = std::max<int64_t>(1, p.groups);
  return x;
}

} // namespace

std::vector<Operand> operands_of(EpilogueOp op, const Gemm& p) {
  std::vector<Operand> out;
  for (const Step& step : kSteps)
    if (step.op == op) out.push_back(operand_of(step, p));
  return out;
}

std::vector<Operand> signature(const Gemm& p) {
  using Role = Operand::Role;
  std::vector<Operand> all = {{"a", Role::in, Shape::matrix, p.a, p.a_rows(), p.a_columns(), p.batch},
                              {"b", Role::in, Shape::matrix, p.b, p.b_rows(), p.b_columns(), p.b_matrices()},
                              {"c", Role::in, Shape::matrix, p.d, p.m, p.n, p.batch, false, true},
                              {"d", Role::out, Shape::matrix, p.d, p.m, p.n, p.batch},
                              {"alpha", Role::scalar, Shape::value, p.scale_type(), 1, 1, 1, false},
                              {"beta", Role::scalar, Shape::value, p.scale_type(), 1, 1, 1, false}};
  for (const Step& step : kSteps)
    if (p.has(step.op)) all.push_back(operand_of(step, p));
  if (p.groups) all.push_back({"offsets", Role::table, Shape::per_row, Type::i32, 1, p.groups + 1});
  return all;
}

std::vector<Operand> signature(const Rows& p) {
  using Role = Operand::Role;
  std::vector<Operand> all = {{"x", Role::in, Shape::matrix, p.x, p.m, p.n, 1, true, true}};
  if (p.residual) all.push_back({"residual", Role::in, Shape::matrix, p.x, p.m, p.n, 1, true, true});
  if (p.scale) all.push_back({"scale", Role::in, Shape::per_column, p.x, 1, p.n});
  if (p.bias) all.push_back({"bias", Role::in, Shape::per_column, p.x, 1, p.n});
  all.push_back({"d", Role::out, Shape::matrix, p.d, p.m, p.n});
  if (p.output_residual) all.push_back({"residual_out", Role::out, Shape::matrix, p.x, p.m, p.n});
  if (p.quantised()) all.push_back({"row_scales", Role::out, Shape::per_row, Type::f32, 1, p.m});
  if (p.normalises())
    all.push_back({"epsilon", Role::scalar, Shape::value, Type::f32, 1, 1, 1, true, false,
                   Operand::Limit::not_negative});
  return all;
}

std::vector<Operand> signature(const Problem& p) {
  return std::visit([](const auto& x) { return signature(x); }, p.which());
}

} // namespace deepgen
