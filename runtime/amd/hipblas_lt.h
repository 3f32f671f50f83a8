// hipBLASLt, found by dlopen. Internal.
#pragma once

#include "runtime/gpu/lt_library.h"

namespace deepgen::amd {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// hipblaslt.h and hipblas-common.h of ROCm 6.1 to 7, in the order of LtNumbers.
inline constexpr LtNumbers lt_numbers = {0,   1,   2, 3, 4, 5, 6, /* attributes of a multiplication */
                                         -1,                      /* fast accumulation */
                                         0,   1,                  /* attributes of a layout */
                                         111, 112,                /* operations */
                                         7,   6,   9, 2 /* compute types: f64, tf32, i32, f32 */};

/// It is that of HIP's library in this process. DEEPGEN_HIPBLASLT in the environment names another file, for
/// tests.
Fallback find_lt(const char* version, int ordinal, const LtLibrary*& library, void*& handle); // FindLt

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::amd
