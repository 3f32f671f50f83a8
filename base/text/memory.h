// What to say when memory is short.
#pragma once

#include "base/text/error.h"

#include <cstdint>

namespace deepgen {

/// "1.50 GiB", "512 bytes"
std::string bytes_text(int64_t bytes);
/// The limits that hold for this process, and what the machine has: "the limit on address space is 200.00 MiB
/// (ulimit -v); ..."
std::string memory_text();
/// Of the machine; 0: unknown.
int64_t physical_memory();
/// `wanted`: bytes that were refused; 0 where nobody knows. `error`: errno, or 0.
HostFault no_memory(const std::string& what, const std::string& where, int64_t wanted, int error = 0);

} // namespace deepgen
