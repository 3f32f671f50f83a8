// Objects that another run or build of the tests has made of the same IR.
#pragma once

#include <cstdint>
#include <string>

namespace llvm {
class Module;
}

namespace deepgen {

/// The module's code for a CPU, optimized. $DEEPGEN_KEEP_OBJECTS names a folder where objects are kept under
/// the SHA-256 of their IR and of what compiles it, LLVM's version and the hash of the sources of this
/// folder: a later run makes the same bytes, and so does one with sanitizers, in twice the time. It is for
/// tests alone; without it nothing is kept.
std::string object_of(llvm::Module&, int64_t isa);

} // namespace deepgen
