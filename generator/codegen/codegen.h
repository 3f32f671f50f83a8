// Codegen: the MLIR pipeline, and the LLVM one for host code (for GPUs: nvptx.h, amdgpu.h). Internal to the
// compiler.
#pragma once

#include "base/kernel/kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/IR/Module.h"

#include <memory>

namespace deepgen {

/// Collects what MLIR reports while it lives.
class Diagnostics {
public:
  explicit Diagnostics(mlir::MLIRContext* context)
      : handler_(context, [this](mlir::Diagnostic& d) {
          text_ += (text_.empty() ? "" : "; ") + d.str();
          return mlir::success();
        }) {}
  const std::string& text() const { return text_; }

private:
  std::string text_;
  mlir::ScopedDiagnosticHandler handler_;
};

/// Sets LLVM's options, once a process.
void initialize_llvm();

/// A context with the dialects that templates use, single-threaded (candidates are compiled in parallel by
/// Ninja).
std::unique_ptr<mlir::MLIRContext> make_context();

/// scf, arith, vector, math, func, nvvm -> llvm dialect. Throws Error with MLIR's diagnostics.
void lower_to_llvm(mlir::ModuleOp);

/// -> LLVM IR for x86-64 at the level of `isa` (base/kernel/cpu_isa.h) with its extensions, with vectors of
/// the level's full width.
std::unique_ptr<llvm::Module> translate(mlir::ModuleOp, llvm::LLVMContext&, int64_t isa);
void optimize(llvm::Module&, int64_t isa);
/// An ELF object, or assembly text.
std::string emit_code(llvm::Module&, int64_t isa, bool assembly);

/// Lays out the object's text and constants as one image and resolves every relocation in it; what needs more
/// (an external symbol, an absolute address) throws Error. Sets code, entry and align of the kernel.
void link_image(const std::string& object, Kernel&);

} // namespace deepgen
