// SHA-256 (FIPS 180-4), for what must not need LLVM.
#pragma once

#include <string>
#include <string_view>

namespace deepgen {

/// 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

} // namespace deepgen
