// Which of a function's many kernels a call of some sizes takes, by a table: looking at one after the other
// takes a nanosecond each. Made when kernels are selected; a call neither locks nor allocates. Internal.
#pragma once

#include "deepgen/kernel_abi.h"
#include "runtime/core/abi.h"

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

constexpr uint32_t fewest_indexed = 8; ///< kernels of a function; fewer are as fast one after the other
constexpr uint32_t most_indexed = 64;  ///< and one that takes any sizes among them; more have no table
constexpr uint32_t no_part = ~0u;

struct PartIndex;

/// Of kernels in the order in which a call tries them, up to the first that takes any sizes. Null where they
/// are few, where a table would be large, or for lack of memory. std::free() ends it.
PartIndex* make_part_index(const deepgen_function&, const deepgen_kernel* const* kernels, uint32_t count);

/// The place of the first that takes a call of these sizes; no_part: no table says, as of a size that is 0.
uint32_t indexed_place(const PartIndex&, const int64_t* sizes);

/// On the CPU, where a function's kernels lie side by side, `first` and those behind it. Does nothing where
/// there is no index to be had.
void index_parts(const deepgen_function&, const deepgen_kernel* first);

/// The first one from `first` on that takes a call of these sizes. Null: no table says.
const deepgen_kernel* indexed_part(const deepgen_function&, const deepgen_kernel* first,
                                   const int64_t* sizes);

/// While no call of the function runs.
void forget_parts(const deepgen_function&);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
