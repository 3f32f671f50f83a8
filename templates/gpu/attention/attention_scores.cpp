#include "templates/gpu/attention/attention_scores.h"

#include <cmath>

namespace deepgen {

AttentionScores::AttentionScores(const AttentionBlock& b) : ir(b.ir), p(b.p), block(b) {
  Value scale = ir.bitcast(ir.i32, b.arguments.at("score_scale"));
  scale = ir.bitcast(ir.f32, ir.bit_and(scale, 0x7fffffff)); // Q has the sign
  unit_ = ir.mulf(scale, number(kLog2OfE));
  find_cap();
  if (!p.bias) return;
  step_ = unit_, unit_ = number(1);
}

void AttentionScores::find_cap() {
  if (!p.softcap) return;
  cap_ = block.arguments.at("softcap");
  capped_ = ir.is_not(cap_, 0.0);
  steep_ = ir.divf(ir.mulf(unit_, number(2)), cap_);
  unit_ = ir.select(capped_, number(kLog2OfE), unit_);
}

/// tanh(x) = 1 - 2 / (exp(2 x) + 1), whose error is a few units in the last place of 1.
void AttentionScores::cap(Values& scores) const {
  if (!p.softcap) return;
  const llvm::SmallVector<mlir::Type> types(scores.size(), ir.f32);
  scores = ir.branch(
      capped_, types,
      [&] {
        Values out;
        for (Value s : scores) {
          Value power = ir.exp2_fast(ir.mulf(s, steep_));
          Value part = ir.reciprocal_fast(ir.addf(power, number(1)));
          out.push_back(ir.mulf(cap_, ir.multiply_add(part, number(-2), number(1))));
        }
        return out;
      },
      [&] { return scores; });
}

void AttentionScores::add_bias(Values& scores, Value first, const BiasPlaces& at) const {
  Value column = ir.add(first, at.column), end = block.last().to;
  const llvm::SmallVector<mlir::Type> types(scores.size(), ir.f32);
  const auto add = [&](int64_t together, const std::function<Value(int64_t key)>& offset) {
    Values out = scores;
    for (int64_t i = 0; i < at.rows; ++i) add_bias_of_row(out, i, at, together, offset);
    return out;
  };
  Value bytes = ir.mul(ir.to_i64(column), size_of(*p.bias)); // loads differ by what an instruction adds
  const auto own = [&](int64_t key) { return ir.add(bytes, key * size_of(*p.bias)); };
  scores = ir.branch(
      ir.less(end, ir.add(first, block.t.keys)), types,
      [&] {
        Value last = ir.sub(end, ir.c(1));
        return add(1, [&](int64_t key) {
          return ir.mul(ir.to_i64(ir.min(ir.add(column, key), last)), size_of(*p.bias));
        });
      },
      [&] {
        if (at.unaligned) return add(at.together, own);
        return ir.branch(
            block.bias_aligned(at.together * size_of(*p.bias)), types, [&] { return add(at.together, own); },
            [&] { return add(1, own); });
      });
}

/// `together`: keys that one load brings.
void AttentionScores::add_bias_of_row(Values& scores, int64_t i, const BiasPlaces& at, int64_t together,
                                      const std::function<Value(int64_t key)>& offset) const {
  const Type type = *p.bias;
  const int64_t alignment = (at.unaligned ? 1 : together) * size_of(type);
  Value row = block.bias_row(at.row(i));
  for (size_t k = 0; k < at.keys.size(); k += size_t(together)) {
    Value loaded = ir.load_global(ir.lanes(together, ir.memory_type(type)),
                                  ir.offset(row, offset(at.keys[k])), alignment);
    for (int64_t part = 0; part < together; ++part) {
      // The lowest numbers, which some pass to hide a key, are -infinity then: nothing is subtracted from it.
      Value bias = ir.decode(type, together == 1 ? loaded : ir.extract(loaded, part));
      Value& s = scores[at.score_at(i, k + size_t(part))];
      s = ir.multiply_add(s, step_, ir.mulf(bias, number(kLog2OfE)));
    }
  }
}

Value AttentionScores::finite(Value x) const { return ir.select(ir.is_not(x, -INFINITY), x, number(0)); }

AttentionScores::End AttentionScores::end(Value most, Value sum, Value head) const {
  Value factor = number(1);
  if (p.sink) {
    Value at = ir.offset(block.arguments.at("sink"), ir.mul(ir.to_i64(head), 4));
    Value sink = ir.mulf(ir.load_global(ir.f32, at, 4), number(kLog2OfE));
    Value all = ir.larger(most, sink), origin = finite(all);
    factor = ir.exp2_fast(ir.subf(most, origin));
    sum = ir.multiply_add(sum, factor, ir.exp2_fast(ir.subf(sink, origin)));
    most = all;
  }
  End out;
  out.factor = ir.select(ir.is_not(sum, 0.0), ir.mulf(factor, ir.reciprocal_fast(sum)), number(0));
  if (p.lse) out.lse = ir.mulf(ir.addf(most, ir.log2_fast(sum)), number(kLogOf2));
  return out;
}

} // namespace deepgen
