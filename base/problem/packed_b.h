// The layout of a B that is packed ahead of calls, as the runtime writes it (deepgen/packed_layout.h).
#pragma once

#include "base/problem/gemm.h"
#include "runtime/include/deepgen/packed_layout.h"

namespace deepgen {

/// Of a problem with packed_b.
PackedLayout packed_layout(const Gemm&);
uint64_t packed_layout_id(const Gemm&);
/// The same as kernel files and locks have it: 16 hex digits; empty where B is taken as it is stored.
std::string packed_layout_text(const Gemm&);
/// Why no function takes B packed; empty where one can.
std::string why_not_packed(const Gemm&);

} // namespace deepgen
