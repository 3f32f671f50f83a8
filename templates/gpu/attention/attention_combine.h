// The second launch of an attention whose blocks share out the keys of an entry: adds up the parts of each
// row, in the order of the splits.
#pragma once

#include "base/kernel/kernel.h"
#include "templates/gpu/attention/attention_block.h"

namespace deepgen {

/// Adds its entry to the module. `paired`: rows of out are aligned to two elements. `wave`: a block has whole
/// ones.
Launch combine_parts(GpuIr&, const Attention&, const AttentionTile&,
                     const std::vector<std::string>& arguments, bool paired, int64_t wave);

} // namespace deepgen
