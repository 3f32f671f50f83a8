// Which of a function's kernels this device runs. Internal.
#pragma once

#include "runtime/core/abi.h"

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// The first kernel that runs here, and behind it the others; selects when the call comes before the
/// library's static initializer. Null: none runs here.
const deepgen_kernel* selected_kernel(const deepgen_function& function);

/// The one for a call of these sizes. Null: none runs here.
const deepgen_kernel* kernel_for(const deepgen_function& function, const int64_t* sizes);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
