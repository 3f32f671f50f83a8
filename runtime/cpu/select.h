// Which of a function's kernels this device runs. Internal.
#pragma once

#include "runtime/core/abi.h"

namespace deepgen::inline DEEPGEN_ABI_NAMESPACE {

/// The selected kernel; selects when the call comes before the library's static initializer. Null: none runs
/// here.
const deepgen_kernel* selected_kernel(const deepgen_function& function);

} // namespace deepgen::inline DEEPGEN_ABI_NAMESPACE
