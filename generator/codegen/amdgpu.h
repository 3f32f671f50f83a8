// AMDGPU: the LLVM pipeline for AMD GPUs, from a template's module to a code object, which LLVM's lld links.
// Internal to the compiler; includes LLVM.
#pragma once

#include "base/kernel/kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

#include <memory>
#include <string>

namespace deepgen {

/// A lowered module -> LLVM IR for `target` ("gfx942", ...), for the code object version that the environment
/// asks for
/// ($DEEPGEN_AMD_CODE_OBJECT: 4, the default, 5 or 6).
std::unique_ptr<llvm::Module> translate_amd(mlir::ModuleOp, llvm::LLVMContext&, const std::string& target);
void optimize_amd(llvm::Module&, const std::string& target);
std::string emit_amd(llvm::Module&, const std::string& target,
                     bool assembly); ///< text, or a relocatable object

/// Links the object and fills in kernel.code, assembler and the resources of its launches. Throws Error when
/// an entry is missing, or lld is not there.
void link_amd(const std::string& object, Kernel&);

/// Path of LLVM 22's ld.lld: $DEEPGEN_LLD, else the one that this tool was built beside, else ld.lld-22 in
/// PATH; empty when there is none.
std::string find_lld();
std::string lld_version();          ///< "LLD 22.1.8"; empty when there is none
std::string amd_code_object_text(); ///< "code object 4"

/// Sets the resources of `kernel`'s launches from the metadata of its code object.
void read_amd_resources(Kernel&);
/// Why the kernel would be slower than its config suggests: scratch memory, spills, or no room for a block.
/// Empty when it is sound.
std::string why_rejected_amd(const Kernel&);

} // namespace deepgen
