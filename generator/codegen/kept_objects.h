// Objects that another build's tests have made of the same IR.
#pragma once

#include <cstdint>
#include <string>

namespace llvm {
class Module;
}

namespace deepgen {

/// The module's code for a CPU, optimized. $DEEPGEN_KEEP_OBJECTS names a folder where objects are kept under
/// the SHA-256 of their IR and of what compiles it: with sanitizers LLVM takes twice as long, and makes the
/// same bytes. It is for tests alone; without it nothing is kept.
std::string object_of(llvm::Module&, int64_t isa);

} // namespace deepgen
