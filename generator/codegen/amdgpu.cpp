#include "generator/codegen/amdgpu.h"

#include "base/kernel/amd.h"
#include "base/text/error.h"
#include "generator/codegen/amd_waits.h"
#include "generator/codegen/codegen.h"
#include "generator/codegen/gpu_passes.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

#include <cstdlib>
#include <map>

namespace deepgen {
namespace {

/// One target machine a target and process: building one costs milliseconds.
llvm::TargetMachine& target_machine(const std::string& cpu) {
  static std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[cpu];
  if (!machine) {
    initialize_llvm();
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    llvm::Triple triple("amdgcn-amd-amdhsa");
    std::string why;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, why);
    if (!target) throw Error("LLVM has no AMDGPU target", "", why);
    // No features: the code runs with xnack and sramecc on or off. Above this level there would be GVN twice
    // where this has CSE: a tenth of the time, for the same main loops and no fewer registers.
    machine.reset(target->createTargetMachine(triple, cpu, "", llvm::TargetOptions(), std::nullopt,
                                              std::nullopt, llvm::CodeGenOptLevel::Default));
  }
  return *machine;
}

/// Version 4 is what the oldest runtimes in use load, such as Hygon's DTK; later ones load it too.
uint32_t code_object_version() {
  const char* value = std::getenv("DEEPGEN_AMD_CODE_OBJECT");
  const std::string text = value && *value ? value : "4";
  if (text != "4" && text != "5" && text != "6")
    throw Error("unknown code object version", "DEEPGEN_AMD_CODE_OBJECT", text, "use 4, 5 or 6");
  return uint32_t(text[0] - '0') * 100;
}

/// A loop's products are used when it begins anew. Where a branch comes between, such as that around the
/// stores of threads that have any, LLVM would sink them behind it, and all that was read for them would wait
/// in registers: 73 spilled for an f64 tile of 1 x 4 elements, where 60 registers suffice.
void keep_products_in_place(llvm::Function& f) {
  for (llvm::Instruction& i : llvm::instructions(f)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
    const llvm::Function* called = call ? call->getCalledFunction() : nullptr;
    if (!called) continue;
    const llvm::StringRef name = called->getName();
    if (name.starts_with("llvm.fma.") || name.contains("dot")) call->setConvergent();
  }
}

/// What addPassesToEmitFile() adds, without the pass that sinks machine instructions, and with that of
/// amd_waits.h. True when something is lacking.
bool add_passes(llvm::TargetMachine& machine, llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& out,
                llvm::CodeGenFileType kind) {
  auto* modules = new llvm::MachineModuleInfoWrapperPass(&machine); // the pass manager's, as is the other one
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  config->disablePass(&llvm::MachineSinkingLegacyID);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(modules);
  if (config->addISelPasses()) return true;
  config->addMachinePasses();
  passes.add(lds_waits_pass());
  config->setInitialized();
  if (machine.addAsmPrinter(passes, out, nullptr, kind, modules->getMMI().getContext())) return true;
  passes.add(llvm::createFreeMachineFunctionPass());
  return false;
}

} // namespace

std::string amd_code_object_text() { return "code object " + std::to_string(code_object_version() / 100); }

std::unique_ptr<llvm::Module> translate_amd(mlir::ModuleOp module, llvm::LLVMContext& context,
                                            const std::string& target) {
  Diagnostics diagnostics(module.getContext());
  std::unique_ptr<llvm::Module> out = mlir::translateModuleToLLVMIR(module, context, "deepgen");
  if (!out) throw Error("translation to LLVM IR failed", "", diagnostics.text());
  llvm::TargetMachine& machine = target_machine(target);
  out->setTargetTriple(machine.getTargetTriple());
  out->setDataLayout(machine.createDataLayout());
  out->addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", code_object_version());
  for (llvm::Function& f : *out) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", target);
    f.addFnAttr(llvm::Attribute::Convergent);
    f.addFnAttr(llvm::Attribute::NoUnwind);
    keep_products_in_place(f);
  }
  return out;
}

void optimize_amd(llvm::Module& module, const std::string& target) {
  run_gpu_passes(module, target_machine(target));
}

std::string emit_amd(llvm::Module& module, const std::string& target, bool assembly) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto kind = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  if (add_passes(target_machine(target), passes, stream, kind))
    throw Error("LLVM cannot emit code for " + target);
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

} // namespace deepgen
