// Values of kernels' code, and the names of what makes them: all that headers need which do not make any.
// MLIR's builders take a compiler three times as long, in each of the sources that only enumerate and
// estimate.
#pragma once

#include "mlir/IR/Value.h"

#include <map>
#include <string>

namespace mlir {
class Block;
class ModuleOp;
class TypeRange;
class ValueRange;
} // namespace mlir

namespace deepgen {

using mlir::Value;
using Values = llvm::SmallVector<Value, 32>;
using KernelArguments = std::map<std::string, Value>; ///< of an entry, by the names of gpu_arguments()

class Ir;
class GpuIr;
class AmdIr;
class NvIr;
class HopperIr;

} // namespace deepgen
