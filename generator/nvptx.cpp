#include "generator/nvptx.h"

#include "base/device.h"
#include "base/error.h"
#include "generator/codegen.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <map>

namespace deepgen {
namespace {

/// The PTX ISA version that introduced the target.
int target_version(const std::string& target) {
  const int64_t capability = compute_capability(target);
  return capability >= 120 ? 87 : capability >= 100 ? 86 : 80;
}

int isa_version(const llvm::Module&, const std::string& target) { return std::max(target_version(target), 84); }

/// One target machine a target, ISA version and process: building one costs milliseconds.
llvm::TargetMachine& target_machine(const std::string& cpu, int version) {
  static std::map<std::pair<std::string, int>, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[{cpu, version}];
  if (!machine) {
    initialize_llvm();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::Triple triple("nvptx64-nvidia-cuda");
    std::string why;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, why);
    if (!target) throw Error("LLVM has no NVPTX target", "", why);
    machine.reset(target->createTargetMachine(triple, cpu, "+ptx" + std::to_string(version), llvm::TargetOptions(),
                                              std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  }
  return *machine;
}

/// MLIR's inline assembly is not marked convergent; without the mark LLVM may move it into or out of a branch.
void mark_convergent(llvm::Function& f) {
  f.addFnAttr(llvm::Attribute::Convergent);
  for (llvm::Instruction& i : llvm::instructions(f))
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i))
      if (auto* text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()); text && text->hasSideEffects())
        call->addFnAttr(llvm::Attribute::Convergent);
}

} // namespace

std::unique_ptr<llvm::Module> translate_gpu(mlir::ModuleOp module, llvm::LLVMContext& context,
                                            const std::string& target) {
  Diagnostics diagnostics(module.getContext());
  std::unique_ptr<llvm::Module> out = mlir::translateModuleToLLVMIR(module, context, "deepgen");
  if (!out) throw Error("translation to LLVM IR failed", "", diagnostics.text());
  llvm::TargetMachine& machine = target_machine(target, isa_version(*out, target));
  out->setTargetTriple(machine.getTargetTriple());
  out->setDataLayout(machine.createDataLayout());
  for (llvm::Function& f : *out)
    if (!f.isDeclaration()) mark_convergent(f);
  return out;
}

void optimize_gpu(llvm::Module& module, const std::string& target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target_machine(target, isa_version(module, target)));
  builder.registerModuleAnalyses(modules);
  builder.registerFunctionAnalyses(functions);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  // Loops are already tiled and unrolled as the config says: no pass here unrolls, peels or vectorizes.
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  llvm::ModulePassManager pipeline;
  pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  pipeline.addPass(llvm::GlobalDCEPass());
  pipeline.run(module, modules);
}

std::string emit_ptx(llvm::Module& module, const std::string& target) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (target_machine(target, isa_version(module, target))
          .addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile, true))
    throw Error("LLVM cannot emit PTX");
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

} // namespace deepgen
