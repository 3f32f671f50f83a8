// cuBLASLt, found by dlopen. Internal.
#pragma once

#include "runtime/gpu/lt_library.h"

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// cublasLt.h and cublas_api.h of CUDA 12 and 13, in the order of LtNumbers.
inline constexpr LtNumbers lt_numbers = {3,  4,  7,  8, 26, 17, 18, /* attributes of a multiplication */
                                         25,                        /* fast accumulation */
                                         5,  6,                     /* attributes of a layout */
                                         0,  1,                     /* operations */
                                         70, 77, 72, 68 /* compute types: f64, tf32, i32, f32 */};

/// DEEPGEN_CUBLASLT in the environment names another file, for tests.
Fallback find_lt(const char* version, int ordinal, const LtLibrary*& library, void*& handle); // FindLt

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
