// Pairs of vectors of bf16: twice as many neighbours as a vector of f32 has lanes, as the vector of those in
// even places and that of those in odd ones. A word of memory has one of each, so that they need no shuffle:
// one instruction widens each, where lanes in order take two.
#pragma once

#include "templates/ir/ir_builder.h"

namespace deepgen {

enum class Half { even, odd };

/// One half of the pair at an address, in f32.
Value load_half(Ir&, Value address, Half);

/// A pair, rounded to nearest even. A NaN must have nothing in its lower 16 bits, as those have that come
/// from bf16 by arithmetic: so none of them becomes an infinity. `aligned`: to the pair's bytes in memory,
/// and then past the caches.
void store_pair(Ir&, Value even, Value odd, Value address, bool aligned);
/// What an aligned store of a pair is aligned to.
int64_t pair_bytes(const Ir&);

} // namespace deepgen
