// The sizes that a function was built for, as constants of its header: a caller checks its own against them
// when it is compiled.
#pragma once

#include "generator/embed/embed.h"

namespace deepgen {

struct SizeConstant {
  std::string name; ///< of the member of the struct of arguments, or "m", "bytes_a"
  int64_t value;
  bool is_bytes;
};
/// The operator's sizes (m, n, k, batch, and groups where there are any; m, n), of a range both ends; the
/// leading dimensions of dense matrices, which are the smallest; the bytes of every operand with dense
/// matrices, all batch entries and groups included, in the largest call. What follows from a range and is no
/// number of bytes has none.
std::vector<SizeConstant> size_constants_of(const Problem&);

/// "KERNELS_FFN_UP_BYTES_A"
std::string size_macro(const LibraryFunction&, const SizeConstant&);

std::string size_macros(const LibraryFunction&);    ///< for C and C++
std::string size_constants(const LibraryFunction&); ///< "struct ffn_up_sizes { ... };", for the C++ namespace

} // namespace deepgen
