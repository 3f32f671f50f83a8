// Every call that verification makes of an attention, whatever computes it.
#pragma once

#include "measure/values/attention/attention_inputs.h"
#include "measure/values/buffers.h"
#include "measure/values/verify.h"

namespace deepgen {

/// What one call, or one set of calls that share out its blocks, must get right.
struct AttentionCase {
  const char* name;
  AttentionShape shape;
  GridCut cut = GridCut::whole;
  Guard guard = Guard::behind;
  bool misaligned = false; ///< bases aligned to an element only
};

/// The call that the problem is tuned for, and small ones of other sizes, layouts and options.
std::vector<AttentionCase> cases_for(const Attention&);

/// Bytes that all their operands and expected results take, or more.
double case_bytes(const Attention&);

/// The operand as a call finds it in memory, from the first element to the last; every byte between elements,
/// and of keys that do not count or pages that no entry has, is 0xff, a NaN.
std::vector<char> stored(Type, const TokenLayout&, const PageBuffer& dense);
void poison_unused(Type, const TokenLayout&, const AttentionShape&, int64_t heads, int64_t dimension,
                   char* stored);

} // namespace deepgen
