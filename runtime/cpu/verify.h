// The parts of deepgen_verify(), one an operator: a function against plain loops in f64. Internal.
#pragma once

#include "runtime/core/arguments.h"

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// What a check says: `text` has room for one sentence.
struct Finding {
  deepgen_status status;
  int64_t checked; ///< elements, when all is right
  char text[160];  ///< what is wrong
};

/// DEEPGEN_ERROR_WORKSPACE without memory for the operands; DEEPGEN_ERROR_ARGUMENT for a key that it cannot
/// read. `padded`: with gaps behind each row, and whatever else a plain call leaves out. `sizes`: of the
/// call.
void verify_gemm(const deepgen_function&, bool padded, const int64_t* sizes, Finding&);
void verify_attention(const deepgen_function&, bool padded, const int64_t* sizes, Finding&);
void verify_rows(const deepgen_function&, bool padded, const int64_t* sizes, Finding&);

/// The next of a sequence of numbers of 64 bits, for operands and samples.
inline uint64_t next_random(uint64_t& seed) {
  return seed = seed * 6364136223846793005u + 1442695040888963407u;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
