// The second launch of an attention whose blocks share out the keys of an entry: adds up the parts of each
// row, in the order of the splits.
#pragma once

#include "base/kernel/kernel.h"
#include "templates/gpu/attention/attention_block.h"

namespace deepgen {

/// What GPUs and templates want of it.
struct CombineForm {
  bool paired;  ///< rows of out are aligned to two elements
  int64_t wave; ///< threads: a block has whole waves
  bool rolled;  ///< many parts are gone over in a loop: else LLVM holds all in scalar registers
};

/// Adds its entry to the module.
Launch combine_parts(GpuIr&, const Attention&, const AttentionTile&,
                     const std::vector<std::string>& arguments, const CombineForm&);

} // namespace deepgen
