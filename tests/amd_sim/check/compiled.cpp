#include "tests/amd_sim/check/compiled.h"

#include "generator/codegen/amdgpu.h"
#include "generator/codegen/codegen.h"
#include "templates/core/template.h"

#include "llvm/Support/raw_ostream.h"

namespace deepgen::amd_sim {

Compiled compile(const Problem& problem, const std::string& arch, const Choice& choice) {
  const std::unique_ptr<mlir::MLIRContext> context = make_context();
  const mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
  Compiled out;
  out.kernel = find_template(choice.template_name).emit(*module, problem, arch, choice.config);
  out.kernel.choice = choice;
  lower_to_llvm(*module);
  llvm::LLVMContext llvm_context;
  const std::unique_ptr<llvm::Module> ir = translate_amd(*module, llvm_context, out.kernel.target);
  optimize_amd(*ir, out.kernel.target);
  llvm::raw_string_ostream stream(out.ir);
  ir->print(stream, nullptr);
  return out;
}

} // namespace deepgen::amd_sim
