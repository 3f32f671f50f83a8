// The second launch of a mma_attention whose blocks share out the keys of an entry: adds up the parts of each
// row, in the order of the splits.
#pragma once

#include "base/kernel/kernel.h"
#include "templates/nvidia/attention/mma_attention.h"

namespace deepgen {

/// Adds its entry to the module.
Launch combine_parts(NvIr&, const Attention&, const MmaAttentionTiling&,
                     const std::vector<std::string>& arguments);

} // namespace deepgen
