// Checks the arguments of a call and turns them into the values of a kernel's argument slots. Internal.
#pragma once

#include "deepgen/kernel_abi.h"
#include "deepgen/runtime.h"

namespace deepgen {

/// The value of each deepgen_arg; ranges and workspace belong to a task and are filled later.
struct ArgumentValues {
  uint64_t slot[DEEPGEN_ARG_COUNT];
};

/// Everything but the workspace. On an error `values` is unspecified.
deepgen_status check_arguments(const deepgen_function& function, const deepgen_gemm_args& args,
                               ArgumentValues& values);

} // namespace deepgen
