// What a strip of rows does with a block of keys: scores, their exponentials, and sums of values.
#include "templates/core/sizes.h"
#include "templates/cpu/attention/cpu_attention_parts.h"
#include "templates/cpu/cpu_values.h"
#include "templates/cpu/pack.h"
#include "templates/cpu/rows/cpu_rows_math.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

namespace deepgen {
namespace {

namespace arith = mlir::arith;

constexpr double kNoScore = -std::numeric_limits<double>::infinity();
constexpr int64_t kUnroll = 4;

/// A register tile of scores: a panel of keys.
void scores_of_panel(Ir& ir, const Attention& p, const AttentionTiling& t, Value q, Value keys,
                     Value scores) {
  const int64_t lanes = t.isa.lanes(), whole = p.head_dim / kUnroll * kUnroll;
  const auto step = [&](Values& sums, Value q_at, Value keys_at, int64_t u) {
    multiply_add(
        ir, sums, t.mr, t.nv, [&](int64_t r) { return ir.at(q_at, r * t.q_ld + u); },
        [&](int64_t j) { return ir.load_vector(ir.at(keys_at, u * t.panel + j * lanes), lanes); });
  };
  Values sums(size_t(t.mr * t.nv), ir.splat(0.0));
  sums = ir.loop(ir.constant(0), ir.constant(whole), kUnroll, sums, [&](Value d, mlir::ValueRange carried) {
    Values next(carried);
    Value q_at = ir.at(q, d), keys_at = ir.at(keys, ir.mul(d, t.panel));
    for (int64_t u = 0; u < kUnroll; ++u) step(next, q_at, keys_at, u);
    return next;
  });
  for (int64_t u = whole; u < p.head_dim; ++u) step(sums, q, keys, u);
  for (int64_t r = 0; r < t.mr; ++r)
    for (int64_t j = 0; j < t.nv; ++j)
      ir.store_vector(sums[size_t(r * t.nv + j)], ir.at(scores, r * t.bk + j * lanes), lanes);
}

/// The numbers of keys of the lanes of a vector that begins with `first`, as i32.
Value key_numbers(Ir& ir, Value first) {
  mlir::Type i32 = ir.b.getI32Type();
  auto type = mlir::VectorType::get({ir.isa.lanes()}, i32);
  llvm::SmallVector<int32_t> lanes;
  for (int64_t lane = 0; lane < ir.isa.lanes(); ++lane) lanes.push_back(int32_t(lane));
  Value numbers = arith::ConstantOp::create(
      ir.b, ir.loc, mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int32_t>(lanes)));
  Value narrow = arith::TruncIOp::create(ir.b, ir.loc, i32, first);
  Value all = mlir::vector::BroadcastOp::create(ir.b, ir.loc, type, narrow);
  return arith::AddIOp::create(ir.b, ir.loc, numbers, all);
}

Value bound(Ir& ir, Value array, int64_t r) {
  Value wide = ir.load(ir.i64, ir.at(array, r * bound_elements), 8);
  Value narrow = arith::TruncIOp::create(ir.b, ir.loc, ir.b.getI32Type(), wide);
  return mlir::vector::BroadcastOp::create(
      ir.b, ir.loc, mlir::VectorType::get({ir.isa.lanes()}, ir.b.getI32Type()), narrow);
}

Value masked_score(Ir& ir, Value x, Value numbers, Value from, Value to) {
  Value behind = arith::CmpIOp::create(ir.b, ir.loc, arith::CmpIPredicate::sge, numbers, from);
  Value before = arith::CmpIOp::create(ir.b, ir.loc, arith::CmpIPredicate::slt, numbers, to);
  return ir.select(arith::AndIOp::create(ir.b, ir.loc, behind, before), x, ir.constant_like(x, kNoScore));
}

/// A bias beyond most_bias is infinite, as it becomes on GPUs.
Value with_limits(Ir& ir, Value bias) {
  Value beyond = arith::CmpFOp::create(ir.b, ir.loc, arith::CmpFPredicate::OGT,
                                       from_bits(ir, magnitude_bits(ir, bias)), ir.splat(most_bias));
  return ir.select(beyond, ir.addf(bias, bias), bias);
}

/// The parameters of softmax_function().
struct SoftmaxOperands {
  Value scores, most, sum, factor, vectors, from, to, first;
};

/// The greatest score of each row, in lanes; what the mask hides becomes -inf.
Values greatest_scores(Ir& ir, const AttentionTiling& t, bool masked, const SoftmaxOperands& o) {
  const int64_t lanes = t.isa.lanes();
  Values from, to;
  for (int64_t r = 0; masked && r < t.mr; ++r)
    from.push_back(bound(ir, o.from, r)), to.push_back(bound(ir, o.to, r));
  const Values none(size_t(t.mr), ir.splat(kNoScore));
  return ir.loop(ir.constant(0), o.vectors, 1, none, [&](Value v, mlir::ValueRange carried) {
    Values next(carried);
    Value column = ir.mul(v, lanes), at = ir.at(o.scores, column);
    Value numbers = masked ? key_numbers(ir, plus(ir, o.first, column)) : Value();
    for (int64_t r = 0; r < t.mr; ++r) {
      Value address = ir.at(at, r * t.bk), x = ir.load_vector(address, lanes);
      if (masked) {
        x = masked_score(ir, x, numbers, from[size_t(r)], to[size_t(r)]);
        ir.store_vector(x, address, lanes);
      }
      next[size_t(r)] = greater(ir, next[size_t(r)], x);
    }
    return next;
  });
}

/// What a row's exponentials are shifted by, and what its sums so far are multiplied by: in all lanes.
struct Rescaling {
  Values shift, factor;
};

/// Of all rows, as lanes of one vector where they fit: the exponential of what a maximum has grown by is one
/// for all.
Rescaling rescale(Ir& ir, const AttentionTiling& t, const Values& greatest, const SoftmaxOperands& o) {
  const int64_t lanes = t.isa.lanes();
  const auto lane = [&](Value x, int64_t i) {
    return ir.splat(mlir::vector::ExtractOp::create(ir.b, ir.loc, x, i));
  };
  Rescaling out;
  for (int64_t first = 0; first < t.mr; first += lanes) {
    const int64_t count = std::min(lanes, t.mr - first);
    Value most = ir.splat(kNoScore), before = ir.load_vector(ir.at(o.most, first), count);
    for (int64_t r = 0; r < count; ++r)
      most = ir.insert(
          combine_lanes(ir, greatest[size_t(first + r)], [&](Value x, Value y) { return greater(ir, x, y); }),
          most, r);
    most = greater(ir, before, most);
    ir.store_vector(most, ir.at(o.most, first), count);
    // A row that has seen no key yet has nothing to shift by: -inf less -inf is no number.
    Value shift = ir.select(ir.is_not(most, kNoScore), most, ir.splat(0.0));
    Value factor = exp_of_negative(ir, ir.subf(before, shift));
    ir.store_vector(factor, ir.at(o.factor, first), count);
    for (int64_t r = 0; r < count; ++r)
      out.shift.push_back(lane(shift, r)), out.factor.push_back(lane(factor, r));
  }
  return out;
}

void softmax_of_strip(Ir& ir, const AttentionTiling& t, bool masked, const SoftmaxOperands& o) {
  const int64_t lanes = t.isa.lanes();
  const Rescaling scaling = rescale(ir, t, greatest_scores(ir, t, masked, o), o);
  const Values zeros(size_t(t.mr), ir.splat(0.0));
  const Values sums = ir.loop(ir.constant(0), o.vectors, 1, zeros, [&](Value v, mlir::ValueRange carried) {
    Values next(carried);
    Value at = ir.at(o.scores, ir.mul(v, lanes));
    for (int64_t r = 0; r < t.mr; ++r) {
      Value address = ir.at(at, r * t.bk);
      Value x = exp_of_negative(ir, ir.subf(ir.load_vector(address, lanes), scaling.shift[size_t(r)]));
      ir.store_vector(x, address, lanes);
      next[size_t(r)] = ir.addf(next[size_t(r)], x);
    }
    return next;
  });
  for (int64_t r = 0; r < t.mr; ++r) { // lanes are added up once, when the row is done
    Value address = ir.at(o.sum, r * lanes);
    Value sum = ir.fma(ir.load_vector(address, lanes), scaling.factor[size_t(r)], sums[size_t(r)]);
    ir.store_vector(sum, address, lanes);
  }
}

} // namespace

void multiply_add(Ir& ir, Values& sums, int64_t rows, int64_t vectors,
                  const std::function<Value(int64_t)>& left, const std::function<Value(int64_t)>& right) {
  Values b;
  for (int64_t j = 0; j < vectors; ++j) b.push_back(right(j));
  for (int64_t r = 0; r < rows; ++r) {
    Value a = ir.splat(ir.load_scalar(left(r)));
    for (int64_t j = 0; j < vectors; ++j) {
      Value& sum = sums[size_t(r * vectors + j)];
      sum = ir.fma(a, b[size_t(j)], sum);
    }
  }
}

void weigh_vectors(Ir& ir, const AttentionTiling& t, const WeighOperands& o, int64_t first, int64_t vectors,
                   const std::function<ValueOfKey(Value key)>& values) {
  const int64_t lanes = t.isa.lanes();
  const auto sum_at = [&](int64_t r, int64_t j) {
    return ir.at(o.out, r * t.value_ld + (first + j) * lanes);
  };
  Values sums;
  for (int64_t r = 0; r < t.mr; ++r) {
    Value before = ir.splat(ir.load_scalar(ir.at(o.factor, r)));
    for (int64_t j = 0; j < vectors; ++j)
      sums.push_back(ir.mulf(before, ir.load_vector(sum_at(r, j), lanes)));
  }
  const auto steps = [&](Value from, Value to, int64_t unroll) {
    sums = ir.loop(from, to, unroll, sums, [&](Value k, mlir::ValueRange carried) {
      Values next(carried);
      Value left = ir.at(o.scores, k);
      const ValueOfKey value = values(k);
      for (int64_t u = 0; u < unroll; ++u)
        multiply_add(
            ir, next, t.mr, vectors, [&](int64_t r) { return ir.at(left, r * t.bk + u); },
            [&](int64_t j) { return value(u, j); });
      return next;
    });
  };
  Value whole = ir.sub(o.keys, ir.remainder(o.keys, kUnroll));
  steps(ir.constant(0), whole, kUnroll);
  steps(whole, o.keys, 1);
  for (int64_t r = 0; r < t.mr; ++r)
    for (int64_t j = 0; j < vectors; ++j) ir.store_vector(sums[size_t(r * vectors + j)], sum_at(r, j), lanes);
}

Value key_offset(Ir& ir, const Attention& p, Value stride, mlir::ValueRange pages, Value key) {
  if (pages.empty()) return ir.mul(key, stride);
  Value token = plus(ir, pages[2], key);
  Value page = arith::DivUIOp::create(ir.b, ir.loc, token, ir.constant(p.page_size));
  Value id = int32_at(ir, pages[0], page);
  return plus(ir, ir.mul(id, pages[1]), ir.mul(ir.remainder(token, p.page_size), stride));
}

/// The parameters of the two functions that pack.
static llvm::SmallVector<mlir::Type> packing_types(Ir& ir, const Attention& p) {
  llvm::SmallVector<mlir::Type> types = {ir.pointer, ir.i64, ir.pointer, ir.i64};
  if (p.paged()) types.append({ir.pointer, ir.i64, ir.i64});
  return types;
}

Value int32_at(Ir& ir, Value table, Value index) {
  mlir::Type i32 = ir.b.getI32Type();
  Value at = mlir::LLVM::GEPOp::create(ir.b, ir.loc, ir.pointer, i32, table, mlir::ValueRange{index});
  return arith::ExtSIOp::create(ir.b, ir.loc, ir.i64, ir.load(i32, at, 4));
}

Value plus(Ir& ir, Value x, Value y) { return arith::AddIOp::create(ir.b, ir.loc, x, y); }
Value plus(Ir& ir, Value x, int64_t y) { return plus(ir, x, ir.constant(y)); }
Value larger(Ir& ir, Value x, Value y) { return arith::MaxSIOp::create(ir.b, ir.loc, x, y); }
Value less(Ir& ir, Value x, Value y) {
  return arith::CmpIOp::create(ir.b, ir.loc, arith::CmpIPredicate::slt, x, y);
}
Value quotient(Ir& ir, Value x, int64_t y) {
  return arith::DivUIOp::create(ir.b, ir.loc, plus(ir, x, y - 1), ir.constant(y));
}

std::string scores_function(Ir& ir, const Attention& p, const AttentionTiling& t) {
  const char* name = "scores";
  ir.function(name, {ir.pointer, ir.pointer, ir.pointer, ir.i64}, true, [&](mlir::ValueRange x) {
    ir.loop(ir.constant(0), x[3], 1, [&](Value panel) {
      scores_of_panel(ir, p, t, x[0], ir.at(x[1], ir.mul(panel, t.panel * p.head_dim)),
                      ir.at(x[2], ir.mul(panel, t.panel)));
    });
  });
  return name;
}

// tanh(y) = (1 - e) / (1 + e) of |y|, e = exp(-2 |y|), with y's sign. Near 0 it is off by a unit roundoff of
// 1, which softcap multiplies: as little as the rounding of a score of that size.
std::string softcap_function(Ir& ir, const AttentionTiling& t) {
  const char* name = "cap_scores";
  const int64_t lanes = t.isa.lanes();
  ir.function(name, {ir.pointer, ir.pointer, ir.i64}, true, [&](mlir::ValueRange x) {
    Value cap = ir.splat(ir.load_scalar(x[0])), one = ir.splat(1.0);
    Value inverse = ir.divf(one, cap), twice = ir.mulf(inverse, ir.splat(-2.0));
    ir.loop(ir.constant(0), x[2], 1, [&](Value v) {
      Value at = ir.at(x[1], ir.mul(v, lanes));
      for (int64_t r = 0; r < t.mr; ++r) {
        Value address = ir.at(at, r * t.bk), score = ir.load_vector(address, lanes);
        Value bits = magnitude_bits(ir, score), magnitude = from_bits(ir, bits);
        Value e = exp_of_negative(ir, ir.mulf(magnitude, twice));
        Value tanh = ir.divf(ir.subf(one, e), ir.addf(one, e));
        Value below = arith::CmpFOp::create(ir.b, ir.loc, arith::CmpFPredicate::OLT, score, ir.splat(0.0));
        Value capped = ir.mulf(cap, tanh);
        ir.store_vector(ir.select(below, ir.subf(ir.splat(0.0), capped), capped), address, lanes);
      }
    });
  });
  return name;
}

std::string bias_function(Ir& ir, const Attention& p, const AttentionTiling& t) {
  const char* name = "add_bias";
  const int64_t lanes = t.isa.lanes();
  ir.function(name, {ir.pointer, ir.pointer, ir.pointer, ir.i64}, true, [&](mlir::ValueRange x) {
    Value whole = ir.sub(x[3], ir.remainder(x[3], lanes));
    for (int64_t r = 0; r < t.mr; ++r) {
      Value row = element_at(ir, *p.bias, x[1], ir.load(ir.i64, ir.at(x[2], r * bound_elements), 8));
      const auto add = [&](Value from, Value to, int64_t count) {
        ir.loop(from, to, count, [&](Value k) {
          Value at = ir.at(ir.at(x[0], r * t.bk), k), score = ir.load_vector(at, count);
          Value bias = load_values(ir, *p.bias, element_at(ir, *p.bias, row, k), count);
          ir.store_vector(ir.addf(score, with_limits(ir, bias)), at, count);
        });
      };
      add(ir.constant(0), whole, lanes);
      add(whole, x[3], 1);
    }
  });
  return name;
}

std::string softmax_function(Ir& ir, const AttentionTiling& t, bool masked) {
  const char* name = masked ? "softmax_masked" : "softmax";
  llvm::SmallVector<mlir::Type> types = {ir.pointer, ir.pointer, ir.pointer, ir.pointer, ir.i64};
  if (masked) types.append({ir.pointer, ir.pointer, ir.i64});
  ir.function(name, types, true, [&](mlir::ValueRange x) {
    SoftmaxOperands o{x[0], x[1], x[2], x[3], x[4], {}, {}, {}};
    if (masked) o.from = x[5], o.to = x[6], o.first = x[7];
    softmax_of_strip(ir, t, masked, o);
  });
  return name;
}

std::string weigh_function(Ir& ir, const AttentionTiling& t) {
  const char* name = "weigh";
  const int64_t lanes = t.isa.lanes(), all = t.value_ld / lanes;
  ir.function(name, {ir.pointer, ir.pointer, ir.pointer, ir.pointer, ir.i64}, true, [&](mlir::ValueRange x) {
    for (int64_t first = 0; first < all; first += t.value_vectors)
      weigh_vectors(ir, t, {x[0], x[2], x[3], x[4]}, first, std::min(t.value_vectors, all - first),
                    [&](Value k) -> ValueOfKey {
                      Value right = ir.at(x[1], ir.mul(k, t.value_ld));
                      return [&ir, &t, right, first, lanes](int64_t u, int64_t j) {
                        return ir.load_vector(ir.at(right, u * t.value_ld + (first + j) * lanes), lanes);
                      };
                    });
  });
  return name;
}

std::string pack_keys_function(Ir& ir, const Attention& p, const AttentionTiling& t) {
  const char* name = "pack_keys";
  const int64_t lanes = t.isa.lanes(), whole = p.head_dim / lanes * lanes;
  ir.function(name, packing_types(ir, p), true, [&](mlir::ValueRange x) {
    Value last = ir.sub(x[3], ir.constant(1));
    ir.loop(ir.constant(0), ir.mul(quotient(ir, x[3], t.panel), t.nv), 1, [&](Value vector) {
      Values rows;
      for (int64_t w = 0; w < lanes; ++w)
        rows.push_back(
            key_offset(ir, p, x[1], x.drop_front(4), ir.min(ir.add(ir.mul(vector, lanes), w), last)));
      Value panel = mlir::arith::DivUIOp::create(ir.b, ir.loc, vector, ir.constant(t.nv));
      Value to =
          ir.at(ir.at(x[2], ir.mul(panel, t.panel * p.head_dim)), ir.mul(ir.remainder(vector, t.nv), lanes));
      const auto square = [&](Value d, int64_t count) {
        Values in;
        for (Value row : rows)
          in.push_back(load_values(ir, p.kv, element_at(ir, p.kv, x[0], ir.add(row, d)), count));
        const Values turned = transpose(ir, in);
        Value at = ir.at(to, ir.mul(d, t.panel));
        for (int64_t k = 0; k < count; ++k) ir.store_vector(turned[size_t(k)], ir.at(at, k * t.panel), lanes);
      };
      ir.loop(ir.constant(0), ir.constant(whole), lanes, [&](Value d) { square(d, lanes); });
      if (whole < p.head_dim) square(ir.constant(whole), p.head_dim - whole);
    });
  });
  return name;
}

std::string pack_values_function(Ir& ir, const Attention& p, const AttentionTiling& t) {
  const char* name = "pack_values";
  const int64_t lanes = t.isa.lanes();
  ir.function(name, packing_types(ir, p), true, [&](mlir::ValueRange x) {
    ir.loop(ir.constant(0), x[3], 1, [&](Value k) {
      Value from = key_offset(ir, p, x[1], x.drop_front(4), k), to = ir.at(x[2], ir.mul(k, t.value_ld));
      for (int64_t j = 0; j < t.value_ld; j += lanes) {
        Value address = element_at(ir, p.kv, x[0], ir.add(from, j));
        ir.store_vector(load_values(ir, p.kv, address, std::min(lanes, p.value_dim - j)), ir.at(to, j),
                        lanes);
      }
    });
  });
  return name;
}

} // namespace deepgen
