// The softmax between the two products of mfma_attention. A lane has keys of one row of Q in each tile of 16
// rows: row l % 16 is that of lane l, and of each tile of 16 keys it has the four from 4 (l / 16) on.
#pragma once

#include "templates/amd/attention/mfma_attention.h"
#include "templates/gpu/attention/attention_scores.h"
#include "templates/ir/amd_ir.h"

namespace deepgen {

class MfmaSoftmax {
public:
  MfmaSoftmax(AmdIr&, AttentionBlock&, const MfmaAttentionTiling&);

  AttentionBlock::Row row(int64_t row_tile) const { return block.row(in_block(row_tile)); }
  /// The same where there is none: the block's last one.
  AttentionBlock::Row nearest_row(int64_t row_tile) const;
  Value group() const { return group_; } ///< of lanes: which keys, or columns, of 16 these have

  /// Maxima of the rows, then sums of their exponentials by this lane.
  Values start() const;
  /// Of a block of keys that begins with `first`: scores become the second product's operands, and the state
  /// is brought up to date. `scores`: by row, then by key. `factors`: what sums before are to be multiplied
  /// by.
  Values weights(Values scores, Value first, Values& state, Values& factors) const;

  /// Of a row, of the keys that the block has seen.
  struct Part {
    Value most, sum; ///< of powers of two
  };
  Part part(const Values& state, int64_t row_tile) const;
  AttentionScores::End end(const Part& x, Value head) const { return scores_.end(x.most, x.sum, head); }

private:
  Value in_block(int64_t row_tile) const { return ir.add(first_row_, 16 * row_tile); }
  Value joined(Value, Value (MfmaSoftmax::*)(Value, Value) const) const;
  Value larger(Value x, Value y) const { return ir.larger(x, y); }
  Value plus(Value x, Value y) const { return ir.addf(x, y); }
  Value number(double x) const { return ir.number(ir.f32, x); }
  void add_bias(Values& scores, Value first) const;
  void mask(Values& scores, Value first) const;
  Value exponentials(llvm::MutableArrayRef<Value> scores, Value& most, Value& sum) const;
  Values packed(llvm::ArrayRef<Value> exponentials) const;
  Value word(Value low, Value high) const;

  AmdIr& ir;
  const Attention& p;
  const MfmaAttentionTiling& t;
  AttentionBlock& block;
  AttentionScores scores_;
  Value group_, first_row_; ///< first_row: the lane's, of the wave's first tile
  double rise_;             ///< exponentials are so many powers of two larger than they are
};

} // namespace deepgen
