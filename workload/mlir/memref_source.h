// The functions of a library in the form that code of MLIR calls: a pointer to a memref's descriptor for each
// operand, the result's last.
#pragma once

#include "workload/mlir/manifest.h"

namespace deepgen::tensors {

/// "kernels_mm_memref": what a module declares, with llvm.emit_c_interface. Its C symbol has _mlir_ciface_
/// before.
std::string memref_symbol(const std::string& ns, const Entry&);
/// C++17, for the library of this namespace and header. The text depends on the arguments alone.
std::string memref_source(const Manifest&, const std::string& ns, const std::string& header);

} // namespace deepgen::tensors
