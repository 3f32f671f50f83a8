// Pieces of the text of generated sources.
#pragma once

#include "base/text/text.h"
#include "generator/embed/embed.h"

namespace deepgen {

/// The C name of a function: "kernels_ffn_up".
inline std::string symbol(const LibraryFunction& f) { return f.file.ns + "_" + f.file.name; }
inline std::string number(int64_t x) { return std::to_string(x); }

} // namespace deepgen
