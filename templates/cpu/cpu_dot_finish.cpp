#include "templates/cpu/cpu_dot_finish.h"

#include "base/text/error.h"
#include "templates/core/sizes.h"
#include "templates/cpu/cpu_values.h"
#include "templates/cpu/micro_kernel.h"
#include "templates/ir/narrow_epilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>

namespace deepgen {
namespace {

namespace arith = mlir::arith;

std::vector<EpilogueOperand> all_operands(const Gemm& p) {
  std::vector<EpilogueOperand> all;
  for (EpilogueOp op : p.epilogue)
    for (const EpilogueOperand& operand : operands_of(op)) all.push_back(operand);
  return all;
}

} // namespace

DotFinish::DotFinish(Ir& builder, Words& w, const Gemm& problem, Value block, Value b, Value row,
                     Value column, int64_t count)
    : ir(builder), words(w), p(problem), args(block), entry(b), m(row), n(column), columns(count),
      lanes(ir.isa.lanes()), vectors(ceil_div(count, lanes)) {}

Value DotFinish::slot(const std::string& name, mlir::Type type) {
  const std::vector<std::string> names = gemm_args(p);
  const auto at = std::find(names.begin(), names.end(), name) - names.begin();
  if (size_t(at) == names.size()) throw Error("no argument slot '" + name + "'");
  return ir.load(type, ir.at_byte(args, 8 * at), 8);
}

DotFinish::Matrix DotFinish::matrix(const std::string& name, const std::string& ld, const std::string& stride,
                                    Type type) {
  Matrix x{pointer(name), number(ld), type};
  if (p.batch > 1) x.base = words.at(type, x.base, ir.mul(entry, number(stride)));
  x.base = words.at(type, words.at(type, x.base, ir.mul(m, x.ld)), n);
  return x;
}

Value DotFinish::element_of(const Matrix& x, Value r, int64_t column) {
  return words.at(x.type, words.at(x.type, x.base, ir.mul(r, x.ld)), column);
}

Type DotFinish::type_of(const std::string& operand) const {
  return operand.starts_with("scale_") ? p.scale_type() : p.epilogue_type();
}

Value DotFinish::single(Type type, Value address) {
  if (type == Type::f32) return ir.splat(ir.load_scalar(address));
  Value x = load_values(ir, type, address, 1);
  return ir.shuffle(x, x, llvm::SmallVector<int64_t>(size_t(lanes), 0));
}

int64_t DotFinish::valid(int64_t j) const { return std::min(lanes, columns - j * lanes); }

void DotFinish::prepare() {
  const bool integer = p.d == Type::i32;
  alpha = slot("alpha", integer ? words.word : ir.element),
  beta = slot("beta", integer ? words.word : ir.element);
  reads_c_ = integer ? ir.not_equal(beta, ir.constant_like(beta, int64_t(0))) : ir.is_not(beta, 0.0);
  scales_ = integer ? ir.not_equal(alpha, ir.constant_like(alpha, int64_t(1))) : ir.is_not(alpha, 1.0);
  alpha = integer ? words.splat(alpha) : ir.splat(alpha), beta = integer ? words.splat(beta) : ir.splat(beta);
  c = matrix("c", "ldc", "stride_c", p.d), d = matrix("d", "ldd", "stride_d", p.d);
  for (const EpilogueOperand& operand : all_operands(p)) {
    const std::string name = operand.name;
    const Type type = type_of(name);
    switch (operand.shape) {
    case OperandShape::matrix:
      matrices[name] = matrix(name, "ld_" + name, "stride_" + name, type);
      break;
    case OperandShape::row:
      values[name] = words.at(type, pointer(name), m);
      break;
    case OperandShape::column:
      values[name] = words.at(type, pointer(name), n);
      break;
    case OperandShape::single:
      values[name] = single(type, pointer(name));
      break;
    case OperandShape::value:
      values[name] = ir.splat(slot(name, ir.element));
      break;
    }
  }
  for (int64_t j = 0; j < vectors; ++j) column_values.push_back(load_columns(j));
}

Value DotFinish::stores_sums() {
  Value changed = arith::OrIOp::create(ir.b, ir.loc, scales_, reads_c_);
  return ir.equal(changed, ir.constant_like(changed, int64_t(0)));
}

DotFinish::Columns DotFinish::load_columns(int64_t j) {
  Columns out;
  for (const EpilogueOperand& operand : all_operands(p))
    if (operand.shape == OperandShape::column) {
      const Type type = type_of(operand.name);
      out[operand.name] = load_values(ir, type, words.at(type, values[operand.name], j * lanes), valid(j));
    }
  return out;
}

Value DotFinish::operand(const EpilogueOperand& which, Value r, int64_t j) {
  const std::string name = which.name;
  switch (which.shape) {
  case OperandShape::column:
    return column_values[size_t(j)][name];
  case OperandShape::row:
    return single(type_of(name), words.at(type_of(name), values[name], r));
  case OperandShape::matrix:
    return load_values(ir, matrices[name].type, element_of(matrices[name], r, j * lanes), valid(j));
  case OperandShape::single:
  case OperandShape::value:
    break;
  }
  return values[name];
}

/// What takes long chains of instructions goes two vectors at a time, as one of twice the lanes: a core's
/// scheduler does not see from one chain to the next.
void DotFinish::apply(EpilogueOp op, Values& row, Value r) {
  const bool narrow = size_of(p.d) <= 2 && has_narrow_function(op);
  const auto one = [&](Value x, int64_t j) {
    if (narrow) return narrow_function(ir, op, x);
    return apply_epilogue(ir, {op}, x, [&](const EpilogueOperand& which) { return operand(which, r, j); });
  };
  const auto count = int64_t(row.size());
  int64_t j = 0;
  if (!is_cheap({op})) {
    llvm::SmallVector<int64_t> both, first, second;
    for (int64_t i = 0; i < lanes; ++i) first.push_back(i), second.push_back(lanes + i);
    both.append(first), both.append(second);
    for (; j + 1 < count; j += 2) {
      Value x = one(ir.shuffle(row[size_t(j)], row[size_t(j + 1)], both), j);
      row[size_t(j)] = ir.shuffle(x, x, first), row[size_t(j + 1)] = ir.shuffle(x, x, second);
    }
  }
  for (; j < count; ++j) row[size_t(j)] = one(row[size_t(j)], j);
}

/// C as numbers: i8 by way of i32.
static Value load_c(Ir& ir, Words& words, Type type, Value address, int64_t count) {
  if (type != Type::i8) return load_values(ir, type, address, count);
  return arith::SIToFPOp::create(ir.b, ir.loc, ir.vector, words.load_bytes(address, count));
}

void DotFinish::integer_row(Value r, const Values& sums, C how) {
  for (int64_t j = 0; j < vectors; ++j) {
    Value x = arith::MulIOp::create(ir.b, ir.loc, sums[size_t(j)], alpha);
    if (how == C::read) {
      Value old = words.load_sums(element_of(c, r, j * lanes), valid(j));
      x = words.add(x, arith::MulIOp::create(ir.b, ir.loc, old, beta));
    }
    words.store(x, element_of(d, r, j * lanes), valid(j));
  }
}

void DotFinish::row(Value r, const Values& sums, C how) {
  if (p.d == Type::i32) return integer_row(r, sums, how);
  const auto product = [&](int64_t j) { return ir.mulf(words.as_f32(sums[size_t(j)]), alpha); };
  Values row;
  for (int64_t j = 0; j < vectors; ++j) row.push_back(product(j));
  if (p.gate) {
    apply(*p.gate, row, r);
    for (int64_t j = 0; j < vectors; ++j) row[size_t(j)] = ir.mulf(row[size_t(j)], product(vectors + j));
  }
  for (int64_t j = 0; how == C::read && j < vectors; ++j)
    row[size_t(j)] =
        ir.fma(beta, load_c(ir, words, p.d, element_of(c, r, j * lanes), valid(j)), row[size_t(j)]);
  for (EpilogueOp op : p.epilogue) apply(op, row, r);
  if (p.d == Type::bf16) return store_bf16(r, row);
  for (int64_t j = 0; j < vectors; ++j) {
    Value x = row[size_t(j)];
    if (p.d == Type::i8) x = clamp(ir, x, ir.splat(-128.0), ir.splat(127.0));
    store_values(ir, p.d, x, element_of(d, r, j * lanes), valid(j));
  }
}

/// Two whole vectors at a time.
void DotFinish::store_bf16(Value r, const Values& row) {
  const Bf16Rounding how = words.dot.rounds_bf16() ? Bf16Rounding::instruction : Bf16Rounding::bits;
  for (int64_t j = 0; j < vectors;) {
    Value at = element_of(d, r, j * lanes);
    if (j + 1 < vectors && valid(j + 1) == lanes) {
      store_bf16_pair(ir, row[size_t(j)], row[size_t(j + 1)], at, how);
      j += 2;
    } else {
      store_bf16_values(ir, row[size_t(j)], at, valid(j), how);
      ++j;
    }
  }
}

} // namespace deepgen
