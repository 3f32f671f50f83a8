// Code that another run or build of the tests has made of what the same template emitted.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>

namespace deepgen {

/// What `make` makes of a module as a template has emitted it, which it may change, for `target`: all else
/// that decides, such as a CPU's features. $DEEPGEN_KEEP_OBJECTS names a folder where that is kept under the
/// SHA-256 of the module, of the target, of LLVM's version and of the sources of this folder: a later run
/// makes the same bytes, and one with sanitizers would take three times as long. It is for tests alone;
/// without it nothing is kept.
///
/// Modules that differ only in the order of operations whose order does not matter are the same here: C++
/// leaves open in which order arguments are evaluated, so g++ and clang make templates emit them in other
/// orders.
std::string kept_code(mlir::ModuleOp, const std::string& target, const std::function<std::string()>& make);

} // namespace deepgen
