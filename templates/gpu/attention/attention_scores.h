// What families of attention do alike with scores and with what a row has come to, wherever a lane holds
// them. In units of powers of two: exp(x) = exp2(x * log2 e).
#pragma once

#include "templates/gpu/attention/attention_block.h"

#include <functional>
#include <vector>

namespace deepgen {

class AttentionScores {
public:
  explicit AttentionScores(const AttentionBlock&);

  /// The factor that makes scores, with their bias, powers of two. Never negative: of a negative scale, Q has
  /// the sign.
  Value unit() const { return unit_; }
  /// softcap * tanh(score / softcap) takes the place of each score, where the call has a softcap.
  void cap(Values& scores) const;
  /// Of a block of keys that begins with `first`: each score is made a power of two, and its bias added. Of
  /// rows behind the block's last one, and keys behind what its rows see, the nearest one's is read.
  struct BiasPlaces {
    int64_t rows;                                        ///< of a lane
    std::function<AttentionBlock::Row(int64_t row)> row; ///< that exists
    Value column;                                        ///< the lane's first key in the block
    std::vector<int64_t> keys;                           ///< of a row, from there on
    int64_t together; ///< of these so many follow each other, from a multiple of that on
    bool unaligned;   ///< loads may have an element's alignment
    std::function<size_t(int64_t row, size_t key)> score_at; ///< in a lane's scores
  };
  void add_bias(Values& scores, Value first, const BiasPlaces&) const;
  /// The number itself, or 0 for -infinity, from which nothing can be subtracted.
  Value finite(Value) const;

  struct End {
    Value factor; ///< of the row's sums
    Value lse;    ///< null where the problem has none
  };
  /// Of a row of this head, whose exponentials all are 2^-most times what they stand for.
  End end(Value most, Value sum, Value head) const;

private:
  void find_cap();
  void add_bias_of_row(Values& scores, int64_t row, const BiasPlaces&, int64_t together,
                       const std::function<Value(int64_t key)>& offset) const;
  Value number(double x) const { return ir.number(ir.f32, x); }

  GpuIr& ir;
  const Attention& p;
  const AttentionBlock& block;
  Value unit_;
  Value capped_;      ///< i1: whether the call has a softcap
  Value step_;        ///< with a bias: the unit of scores without it
  Value steep_, cap_; ///< a score's factor in tanh, times 2 log2 e; softcap
};

} // namespace deepgen
