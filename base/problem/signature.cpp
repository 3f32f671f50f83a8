#include "base/problem/signature.h"

#include <algorithm>
#include <string_view>

namespace deepgen {
using Shape = Operand::Shape;
namespace {

/// Which of the operand's numbers follow from ranges.
void mark_ranges(const Gemm& p, Operand& x) {
  const auto by = [&](Size size) { return p.ranged(size) ? std::optional(size) : std::nullopt; };
  const std::string_view name = x.name;
  if (x.shape == Shape::per_row || x.shape == Shape::per_column)
    x.columns_by = by(x.shape == Shape::per_row ? Size::m : Size::n);
  if (x.shape != Shape::matrix) return;
  const bool a = name == "a", b = name == "b";
  x.rows_by = by(a                        ? (p.a_transposed() ? Size::k : Size::m)
                 : b && !p.b_transposed() ? Size::k
                 : b                      ? Size::n
                                          : Size::m);
  x.columns_by = by(a ? (p.a_transposed() ? Size::m : Size::k) : b && p.b_transposed() ? Size::k : Size::n);
  if (!(b && p.groups)) x.entries_by = by(Size::batch);
}

} // namespace

std::vector<Operand> operands_of(EpilogueOp op, const Gemm& p) {
  using Role = Operand::Role;
  if (op == EpilogueOp::clamp) {
    Operand low{"clamp_low", Role::scalar, Shape::value, p.scale_type()}, high = low;
    high.name = "clamp_high", low.limit = Operand::Limit::ascending;
    return {low, high};
  }
  const EpilogueStep& step = epilogue_steps[size_t(op)];
  if (!*step.operand) return {};
  Operand x{step.operand, Role::in, step.shape, step.scale ? p.scale_type() : p.epilogue_type()};
  if (step.shape == Shape::matrix) x.rows = p.m, x.columns = p.n, x.entries = p.batch, x.in_place = true;
  if (step.shape == Shape::per_row) x.columns = p.m;
  if (step.shape == Shape::per_column) x.columns = p.n, x.entries = std::max<int64_t>(1, p.groups);
  mark_ranges(p, x);
  return {x};
}

std::vector<Operand> signature(const Gemm& p) {
  using Role = Operand::Role;
  std::vector<Operand> all = {{"a", Role::in, Shape::matrix, p.a, p.a_rows(), p.a_columns(), p.batch},
                              {"b", Role::in, Shape::matrix, p.b, p.b_rows(), p.b_columns(), p.b_matrices()},
                              {"c", Role::in, Shape::matrix, p.d, p.m, p.n, p.batch, false, true},
                              {"d", Role::out, Shape::matrix, p.d, p.m, p.n, p.batch},
                              {"alpha", Role::scalar, Shape::value, p.scale_type(), 1, 1, 1, false},
                              {"beta", Role::scalar, Shape::value, p.scale_type(), 1, 1, 1, false}};
  for (int op = 0; op < epilogue_op_count; ++op)
    if (p.has(EpilogueOp(op)))
      for (const Operand& x : operands_of(EpilogueOp(op), p)) all.push_back(x);
  for (Operand& x : all) mark_ranges(p, x);
  all[1].packed = p.packed_b;
  if (p.groups) all.push_back({"offsets", Role::table, Shape::per_row, Type::i32, 1, p.groups + 1});
  all[0].align = Operand::Align::a, all[1].align = Operand::Align::b;
  for (size_t i = 2; i < all.size(); ++i)
    if (all[i].is_matrix()) all[i].align = Operand::Align::d;
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
  for (Operand& x : all)
    if (x.is_matrix())
      x.align = std::string_view(x.name) == "d" ? Operand::Align::d : Operand::Align::a;
    else if (x.shape == Shape::per_column)
      x.align = Operand::Align::b;
  return all;
}

std::vector<Operand> signature(const Attention& p) {
  using Role = Operand::Role;
  const auto tokens = [](const char* name, Role role, Type type, Size rows, int64_t most, int64_t columns,
                         int64_t heads) {
    Operand x{name, role, Shape::per_column, type, most, columns, heads * most_attention_batch};
    x.rows_by = rows, x.entries_by = Size::batch;
    return x;
  };
  const auto table = [](const char* name, int64_t more) {
    return Operand{name, Role::table, Shape::per_column, Type::i32, 1, most_attention_batch + more, 1, false};
  };
  std::vector<Operand> all = {tokens("q", Role::in, p.q, Size::m, p.queries, p.head_dim, p.heads),
                              tokens("key", Role::in, p.kv, Size::n, p.keys, p.head_dim, p.kv_heads),
                              tokens("value", Role::in, p.kv, Size::n, p.keys, p.value_dim, p.kv_heads),
                              tokens("out", Role::out, p.out, Size::m, p.queries, p.value_dim, p.heads)};
  for (Operand& x : all) x.align = x.role == Role::out ? Operand::Align::d : Operand::Align::a;
  if (p.lse) all.push_back(tokens("lse", Role::out, Type::f32, Size::m, p.queries, 1, p.heads));
  if (p.sink) all.push_back({"sink", Role::in, Shape::per_column, Type::f32, 1, p.heads});
  if (p.bias) { // rows of keys
    all.push_back(tokens("bias", Role::in, *p.bias, Size::m, p.queries, p.keys, p.heads));
    all.back().columns_by = Size::n;
  }
  if (p.varlen) all.push_back(table("query_offsets", 1));
  if (p.varlen && !p.paged()) all.push_back(table("key_offsets", 1));
  if (p.varlen || p.paged()) all.push_back(table("keys_used", 0));
  if (p.paged()) { // at most a page for each key
    Operand x{"page_table", Role::table, Shape::per_column, Type::i32, p.keys, 1, most_attention_batch};
    x.rows_by = Size::n, x.entries_by = Size::batch;
    all.push_back(x);
  }
  if (p.softcap)
    all.push_back({"softcap", Role::scalar, Shape::value, Type::f32, 1, 1, 1, false, false,
                   Operand::Limit::not_negative});
  return all;
}

std::vector<Operand> signature(const Problem& p) {
  return std::visit([](const auto& x) { return signature(x); }, p.which());
}

} // namespace deepgen
