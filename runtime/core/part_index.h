// Which of a function's many kernels a call of some sizes takes, by a table: looking at one after the other
// takes a nanosecond each. Made when kernels are selected; a call neither locks nor allocates. Internal.
#pragma once

#include "deepgen/kernel_abi.h"
#include "runtime/core/abi.h"

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

constexpr uint32_t fewest_indexed = 8; ///< kernels of a function; fewer are as fast one after the other

/// Of the kernels from `first` on, up to the one that takes any sizes. Does nothing where a table would be
/// large, or for lack of memory.
void index_parts(const deepgen_function&, const deepgen_kernel* first);

/// The first one from `first` on that takes a call of these sizes. Null: no table says, as of a size that is
/// 0.
const deepgen_kernel* indexed_part(const deepgen_function&, const deepgen_kernel* first,
                                   const int64_t* sizes);

/// While no call of the function runs.
void forget_parts(const deepgen_function&);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
