// The softmax between swapped products, whose rows of Q are columns of wgmma's tiles. Of each 64 keys a warp
// has 16: a lane has those of lane / 4 and 8 more, and of each 8 rows of Q two neighbours. What a row has
// come to is known when the four warps have told each other, through shared memory. In units of powers of
// two.
#pragma once

#include "templates/gpu/attention/attention_scores.h"
#include "templates/ir/hopper_ir.h"
#include "templates/nvidia/hopper_attention/hopper_attention.h"

#include <functional>

namespace deepgen {

class AttentionColumns {
public:
  /// `weights`, `told`: addresses of shared memory; of exponentials, and of what warps tell. `meeting`: the
  /// number of a barrier that the four warps have for themselves.
  AttentionColumns(HopperIr&, const AttentionBlock&, const HopperAttentionTiling&, Value weights, Value told,
                   Value meeting);

  /// Maxima of the thread's rows, then sums of their exponentials of its keys.
  Values start() const;
  void cap(Values& scores) const { scores_.cap(scores); }
  /// Of a block of keys that begins with `first`, those that a row does not see become -infinity.
  void mask(Values& scores, Value first) const;
  /// Of the warp's keys, of each row.
  Values maxima(const Values& scores) const;
  /// The same of all keys. All four warps have come to this when it returns.
  Values shared_maxima(const Values& of_warp) const { return tell(of_warp, 0, larger_); }
  /// Scores become exponentials; maxima and sums are brought up to date. Returns the factors of sums.
  Values exponentials(Values& scores, const Values& largest, Values& state) const;
  /// As the second product takes them: of each row of Q, 64 keys follow each other. The four warps have
  /// stored theirs when it returns.
  void store(const Values& exponentials) const;
  /// The thread's sums become those of all keys.
  void add_up(Values& state) const;
  void rescale(Values& sums, const Values& factors) const;

  /// Results of 8 rows, of which each lane stores one: pairs of columns, for each half of each slice.
  struct Row {
    AttentionBlock::Row row;
    Value most, sum; ///< of powers of two
    Values pairs;    ///< vectors of two
  };
  Row row_of(const Values& sums, const Values& state, int64_t tile) const;
  /// Of the pairs' columns: the first of a slice's half.
  Value column(int64_t pair) const;
  bool may_be_beyond(int64_t pair) const { return pair / 2 * 64 + 64 > p.value_dim; }
  Value tells() const; ///< i1: of a row that row_of() gives, one lane
  AttentionScores::End end(const Row& r) const { return scores_.end(r.most, r.sum, r.row.head); }

private:
  size_t at(int64_t tile, int64_t row, int64_t half) const { // of scores, or sums
    return size_t(tile * t.rows / 2 + row / 2 * 4 + half * 2 + row % 2);
  }
  using Join = std::function<Value(Value, Value)>;
  Value in_warp(Value, const Join&) const;
  Values tell(const Values& own, int64_t place, const Join&) const;
  Value number(double x) const { return ir.number(ir.f32, x); }

  HopperIr& ir;
  const Attention& p;
  const HopperAttentionTiling& t;
  const AttentionBlock& block;
  Value weights_, told_, meeting_;
  Value warp_, key_, row_; ///< of four; the lane's first key and row
  AttentionScores scores_;
  Join larger_;
};

} // namespace deepgen
