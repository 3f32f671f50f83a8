// What rows of an attention must become: in f64, with the error that a kernel may make that computes in f32.
//
// u is 2^-24. A score is a sum of D products: its error is (8 + 4 sqrt D) u |scale| ||q|| ||k||, and 8 u
// softcap of a capped one. A difference from the maximum rounds by 2 u (|s| + |max|), an exponential by 4 u,
// a bias by 2 u of its magnitude, and a sum of N terms by (8 + sqrt N) u of the sum of magnitudes, as in
// rows_expected.h; these are the relative errors of the weights, which out's numerator and denominator have
// each. Then comes the rounding to out's type. Tensor cores multiply weights of 16 bits: these round by 2^-8
// (bf16), or 2^-11 and at least 2^-25 (f16). Of e4m3 they round by 2^-4 and at least 2^-18, as kernels make
// the greatest one 2^8 (AttentionArithmetic::greatest_weight); and sums have 14 bits: a score's error is (8 +
// sqrt(D) / 8) 2^-14 |scale| ||q||
// ||k||, and weights have one of 10 * 2^-14 more, as kernels add blocks of up to 256 keys in f32. gfx90a
// takes subnormal f16 for zeros: a score's error is |scale|
// (||q'|| ||k|| + ||q|| ||k'||) more, of norms of these elements alone, and an element of out may lack what
// such values weigh.
#pragma once

#include "measure/values/attention/attention_inputs.h"

#include <utility>
#include <vector>

namespace deepgen {

struct ExpectedAttention {
  std::vector<double> value, tolerance; ///< of out, ahead of its rounding
  double lse = 0, lse_tolerance = 0;

  /// How far what a kernel stored is from that, in tolerances: above 1 it is wrong. `out`: the type in which
  /// it did.
  double error_of_out(Type out, int64_t d, double found) const;
  double error_of_lse(double found) const;
};

/// How a kernel multiplies.
struct AttentionArithmetic {
  /* implicit */ AttentionArithmetic(Type w = Type::f32, bool f = false) : weights(w), flushes(f) {}
  /// Of GPUs that the code is for: Kernel::target.
  static AttentionArithmetic of(const Attention&, const std::string& target);

  Type weights;            ///< to which weights are rounded where they multiply values
  bool flushes;            ///< subnormal f16 of operands may count as zeros
  int greatest_weight = 8; ///< of e4m3: the exponent of a row's greatest weight as it is rounded
  bool operator==(const AttentionArithmetic&) const = default;
};

/// Of one call, whose operands it reads.
class AttentionReference {
public:
  AttentionReference(const Attention&, const AttentionInputs&, AttentionArithmetic = {});

  struct Row {
    int64_t token, head;
  };
  /// Of rows of an entry whose heads share head `g` of K and V, in their order. Keys become f64 once for many
  /// rows.
  std::vector<ExpectedAttention> rows(int64_t entry, int64_t g, const std::vector<Row>&) const;
  /// The keys that a token of an entry sees: {from, to}.
  std::pair<int64_t, int64_t> seen(int64_t entry, int64_t token) const;

private:
  class Chunk;

  Attention p_;
  const AttentionInputs& in_;
  double scale_;                                 ///< as the f32 that a kernel gets
  double dot_;                                   ///< a score's error, relative to the norms' product
  double weight_unit_ = 0, smallest_weight_ = 0; ///< of their rounding
  bool flushes_;
};

} // namespace deepgen
