// Names that generated C and C++ may define.
#pragma once

#include <string>

namespace deepgen {

/// Why a name is none that C and C++ leave to programs, or is the runtime's own; empty when it is good.
std::string why_no_identifier(const std::string& name);

} // namespace deepgen
