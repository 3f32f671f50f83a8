// Checks the arguments of a call and turns them into the values of a kernel's argument slots. Internal.
#pragma once

#include "runtime/abi.h"

namespace deepgen::inline DEEPGEN_ABI_NAMESPACE {

/// The value of each deepgen_arg; ranges and workspace belong to a task and are filled later, tensor maps by
/// the launch. Slots of operands that the function does not have are 0.
struct ArgumentValues {
  uint64_t slot[DEEPGEN_ARG_COUNT];
};

/// Everything but the workspace. On an error `values` is unspecified.
deepgen_status check_arguments(const deepgen_function& function, const deepgen_gemm_args& args,
                               ArgumentValues& values);

/// Bytes of an element in memory; `type` is a deepgen_type.
inline uint32_t size_of(uint8_t type) {
  constexpr uint8_t sizes[] = {4, 8, 2, 2, 4, 1, 1, 1, 4};
  static_assert(sizeof sizes == DEEPGEN_I32 + 1);
  return sizes[type];
}

/// Whether check_arguments() may be called.
bool has_known_types(const deepgen_function& function);

/// Whether C is read: also when beta is NaN.
inline bool reads_c(const deepgen_gemm_args& args) { return args.beta != 0; }

} // namespace deepgen::inline DEEPGEN_ABI_NAMESPACE
