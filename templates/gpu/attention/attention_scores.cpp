#include "templates/gpu/attention/attention_scores.h"

#include <cmath>

namespace deepgen {

AttentionScores::AttentionScores(const AttentionBlock& b) : ir(b.ir), p(b.p), block(b) {
  Value scale = ir.bitcast(ir.i32, b.arguments.at("score_scale"));
  scale = ir.bitcast(ir.f32, ir.bit_and(scale, 0x7fffffff)); // Q has the sign
  unit_ = ir.mulf(scale, number(kLog2OfE));
  if (!p.softcap) return;
  cap_ = b.arguments.at("softcap");
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
