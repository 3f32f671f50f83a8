// NVPTX: the LLVM pipeline for NVIDIA GPUs, from a template's module to PTX. Internal to the compiler;
// includes LLVM.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

#include <memory>
#include <string>

namespace deepgen {

/// A lowered module -> LLVM IR for `target` ("sm_80", "sm_90a", ...).
std::unique_ptr<llvm::Module> translate_gpu(mlir::ModuleOp, llvm::LLVMContext&, const std::string& target);
void optimize_gpu(llvm::Module&, const std::string& target);
/// PTX text of the lowest ISA version that the target and the module's instructions need, so that older
/// drivers take it.
std::string emit_ptx(llvm::Module&, const std::string& target);

} // namespace deepgen
