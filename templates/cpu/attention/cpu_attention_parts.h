// The functions that a kernel of cpu_attention calls: each names, and defines once, a private function of the
// module. A strip is mr rows; scores lie bk elements apart.
#pragma once

#include "templates/cpu/attention/cpu_attention.h"
#include "templates/ir/ir_builder.h"

#include <functional>

namespace deepgen {

/// (q, keys, scores, panels): scores of a strip with so many panels of keys.
std::string scores_function(Ir&, const Attention&, const AttentionTiling&);

/// (softcap, scores, vectors): softcap * tanh(score / softcap) takes the place of each. `softcap`: its
/// address.
std::string softcap_function(Ir&, const AttentionTiling&);

/// (scores, bias, offsets, keys): adds to each score of a strip its bias, of so many keys and no more. Row
/// r's begins offsets[r] elements from `bias`.
std::string bias_function(Ir&, const Attention&, const AttentionTiling&);

/// (scores, most, sum, factor, vectors): scores become exponentials; `sum` has a vector of partial sums a
/// row. `most` and `sum` are brought up to date, and `factor` gets what sums before this block are to be
/// multiplied by. `masked`: takes (from, to, first) too; row r sees the keys from from[r] to to[r], of which
/// `first` is the block's first.
std::string softmax_function(Ir&, const AttentionTiling&, bool masked);

/// (scores, values, out, factor, keys): out = out * factor + exponentials * values.
std::string weigh_function(Ir&, const AttentionTiling&);

/// (keys, stride, panels, count): copies `count` keys, at least one, into panels of whole register tiles; the
/// last key stands for those that do not exist. With pages (table, page_stride, first) follow: the entry's
/// ids of pages, elements from page to page, and the number of the first key.
std::string pack_keys_function(Ir&, const Attention&, const AttentionTiling&);

/// (values, stride, destination, count), and with pages as above
std::string pack_values_function(Ir&, const Attention&, const AttentionTiling&);

/// As scores_function() and weigh_function(), of keys and values that lie where the caller has them: (q,
/// scores, count) and (scores, out, factor, count, left); then (keys, stride) and (values, stride), in the
/// second's case values first, each with pages as above. The one asks for the block's values, the other for
/// the keys of the next block, of the `left` ones that the entry has from this block's first on. Of scores
/// behind the last key some are those of the last key, and others are not written.
std::string direct_scores_function(Ir&, const Attention&, const AttentionTiling&);
std::string direct_weigh_function(Ir&, const Attention&, const AttentionTiling&);

// What the functions above share.

/// Elements from the first address to a key of the block. pages: none, or the three parameters above.
Value key_offset(Ir&, const Attention&, Value stride, mlir::ValueRange pages, Value key);

/// sums[r * vectors + j] += left(r) * right(j): addresses of scalars, and vectors, which are loaded in the
/// order in which registers are few.
void multiply_add(Ir&, Values& sums, int64_t rows, int64_t vectors, const std::function<Value(int64_t)>& left,
                  const std::function<Value(int64_t)>& right);

/// Of key `key` + u, vector j.
using ValueOfKey = std::function<Value(int64_t u, int64_t j)>;
struct WeighOperands {
  Value scores, out, factor, keys;
};
/// Some vectors of each row's sums of values, from `first` on: out * factor + exponentials * values.
void weigh_vectors(Ir&, const AttentionTiling&, const WeighOperands&, int64_t first, int64_t vectors,
                   const std::function<ValueOfKey(Value key)>& values);

Value int32_at(Ir&, Value table, Value index); ///< as i64

/// Addition where an operand may be negative.
Value plus(Ir&, Value, Value);
Value plus(Ir&, Value, int64_t);
Value larger(Ir&, Value, Value);     ///< of integers with a sign
Value less(Ir&, Value, Value);       ///< i1, of integers with a sign
Value quotient(Ir&, Value, int64_t); ///< of a non-negative value, rounded up

} // namespace deepgen
