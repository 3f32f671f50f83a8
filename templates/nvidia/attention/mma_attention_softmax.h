// The softmax between the two products, of scores in the registers of a warp: rows 8 apart of a tile belong
// to the lanes of a quad. In units of powers of two: exp(x) = exp2(x * log2 e).
#pragma once

#include "templates/gpu/attention/attention_scores.h"
#include "templates/ir/nv_ir.h"

namespace deepgen {

class AttentionSoftmax {
public:
  /// `warp_row`: the warp's first row in the block.
  AttentionSoftmax(NvIr&, AttentionBlock&, Value warp_row);

  /// Maxima of the rows, then sums of their exponentials by this lane; two rows a tile of 16.
  Values start() const;
  int64_t rows() const { return 2 * t.row_tiles(); }

  /// softcap * tanh(score / softcap) takes the place of each score, where the call has a softcap.
  void cap(Values& scores) const { scores_.cap(scores); }
  /// A bias is added, where the problem has one.
  void add_bias(Values& scores, Value first) const;
  /// Of a block of keys that begins with `first`, those that a row does not see become -infinity.
  void mask(Values& scores, Value first) const;
  /// Scores become exponentials; maxima and sums are brought up to date. Returns what each row's sums before
  /// are to be multiplied by. `rises` of a lazy tile: i1, of the warp, whether any of these is not 1.
  /// `halfway`, where there are chains: called when the first half of the scores are exponentials.
  Values exponentials(Values& scores, Values& state, Value* rises = nullptr,
                      const std::function<void()>& halfway = nullptr) const;
  /// Exponentials as fragments of the second product's A: of 16 keys, which two tiles of scores make.
  Values fragment(const Values& exponentials, int64_t row_tile, int64_t step) const;
  /// The same as e4m3, of 32 keys, in an order that keeps them in their lanes: of 16 places along K, four of
  /// a lane of the quad are its two keys of the first tile, then those of the second.
  Values narrow_fragment(const Values& exponentials, int64_t row_tile, int64_t step) const;

  using End = AttentionScores::End;
  struct Part {
    Value most, sum; ///< of powers of two
  };
  /// Of row `index` of the warp, of the keys that the block has seen.
  Part part(const Values& state, int64_t index) const;
  /// Where the block shares keys with others: the row's part goes to the workspace. `store_sums` is told
  /// where it is, and the lane's number in the quad; sums in f32 follow behind attention_record_head.
  void store_part(const Values& state, int64_t index,
                  const std::function<void(Value to, Value quad)>& store_sums) const;
  /// Of two columns of each tile of 8, as tensor cores make them: of row `index`, whose tile of 16 rows has
  /// `tiles` of columns.
  void store_sums(const Values& sums, int64_t index, int64_t tiles, Value to, Value quad) const;
  /// The same, where these are all of the row's.
  End end(const Values& state, int64_t index, const AttentionBlock::Row&) const;
  AttentionBlock::Row row(int64_t index) const { return row(row_, index); }

private:
  AttentionBlock::Row row(Value first, int64_t index) const;
  Value in_quad(Value, Value (AttentionSoftmax::*)(Value, Value) const) const;
  Value larger(Value x, Value y) const { return ir.larger(x, y); }
  Values in_chains(Values& scores, Values& state, Value* rises, const std::function<void()>& halfway) const;
  Value lifted(Value power) const { return t.lift ? ir.addf(power, number(double(t.lift))) : power; }
  Value raise(Value& most, Value largest, Value& minus) const;
  Value minus_most(Value most) const { return ir.subf(number(-0.0), ir.mulf(finite(most), unit_)); }
  Values raise_rarely(llvm::ArrayRef<Value> largest, Values& state, Value& rises) const;
  Value soft_power(Value) const;
  Value joined(llvm::MutableArrayRef<Value> parts, Value (AttentionSoftmax::*)(Value, Value) const) const;
  Value plus(Value x, Value y) const { return ir.addf(x, y); }
  Value number(double x) const { return ir.number(ir.f32, x); }
  Value finite(Value x) const { return scores_.finite(x); }
  /// Of the score in a row's column.
  size_t place(int64_t index, int64_t key_tile, int64_t half) const;

  NvIr& ir;
  const Attention& p;
  const AttentionTile& t;
  AttentionBlock& block;
  Value row_; ///< of the lane's first row in the block
  AttentionScores scores_;
  Value unit_; ///< of scores: the factor that makes them powers of two
};

} // namespace deepgen
