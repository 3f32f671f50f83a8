#include "generator/codegen/nvptx.h"

#include "base/kernel/device.h"
#include "base/text/error.h"
#include "generator/codegen/codegen.h"
#include "generator/codegen/gpu_passes.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

#include <map>

namespace deepgen {
namespace {

/// The PTX ISA version for the target: the one that introduced it, and at least CUDA 12.0's, which the
/// runtime's driver entry points need anyhow.
int target_version(const std::string& target) {
  const int64_t capability = compute_capability(target);
  return capability >= 120 ? 87 : capability >= 100 ? 86 : 80;
}

/// What came later than its target: the version that a call of an intrinsic, or a piece of inline assembly,
/// needs when its name or text has both words.
int instruction_version(llvm::StringRef text) {
  struct Row {
    const char *word, *other;
    int version;
  };
  static constexpr Row rows[] = {{"mma", "e4m3", 84},
                                 {"mma", "e5m2", 84},
                                 {"cvt", "e4m3x2", 81},
                                 {"cvt", "e5m2x2", 81},
                                 {"nvvm.", "e4m3x2", 81},
                                 {"nvvm.", "e5m2x2", 81},
                                 {"tensormap.replace", "", 83},
                                 {"cp.async.bulk", "shared::cta.global", 86},
                                 {"cp.async.bulk", "g2s.cta", 86},
                                 {"cp.async.bulk", "to.shared.cta", 86}};
  int version = 0;
  for (const Row& row : rows)
    if (text.contains(row.word) && text.contains(row.other)) version = std::max(version, row.version);
  return version;
}

int isa_version(const llvm::Module& module, const std::string& target) {
  int version = target_version(target);
  for (const llvm::Function& f : module) {
    if (f.isDeclaration()) version = std::max(version, instruction_version(f.getName()));
    for (const llvm::Instruction& i : llvm::instructions(f))
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i))
        if (auto* text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()))
          version = std::max(version, instruction_version(text->getAsmString()));
  }
  return version;
}

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
    // Aggressive runs GVN twice, a fifth of the time, and the suite's kernels have as many instructions
    // without it.
    machine.reset(target->createTargetMachine(triple, cpu, "+ptx" + std::to_string(version),
                                              llvm::TargetOptions(), std::nullopt, std::nullopt,
                                              llvm::CodeGenOptLevel::Default));
  }
  return *machine;
}

/// Keeps the strength reductions of NVPTX's fixed pipeline from running, for a scope.
/// In loops: pointers that a loop advances become offsets from a common base, each an add in every iteration.
/// Without it the best configs by estimate of the GEMM suite have, on average over sm_90a: mma_sync 10
/// registers and 14 % of the main loop's instructions less (of 63, 3 spill instead of 22), gemv 5 registers
/// and 3 %, simt 5 registers. In straight-line code: it shortens gemv's loops by 2 %, and has no effect on
/// large kernels, where it is half of the time that LLVM takes.
class WithoutStrengthReduction : public llvm::OptPassGate {
public:
  explicit WithoutStrengthReduction(llvm::Module& module)
      : context_(module.getContext()), old_(context_.getOptPassGate()),
        large_(module.getInstructionCount() > 800) {
    context_.setOptPassGate(*this);
  }
  ~WithoutStrengthReduction() override { context_.setOptPassGate(old_); }
  WithoutStrengthReduction(const WithoutStrengthReduction&) = delete;
  WithoutStrengthReduction& operator=(const WithoutStrengthReduction&) = delete;

  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override {
    return pass != "Loop Strength Reduction" && !(large_ && pass == "slsr");
  }

private:
  llvm::LLVMContext& context_;
  llvm::OptPassGate& old_;
  const bool large_;
};

/// MLIR's inline assembly is not marked convergent; without the mark LLVM may move it into or out of a
/// branch.
void mark_convergent(llvm::Function& f) {
  f.addFnAttr(llvm::Attribute::Convergent);
  for (llvm::Instruction& i : llvm::instructions(f))
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i))
      if (auto* text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand());
          text && text->hasSideEffects())
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
  run_gpu_passes(module, target_machine(target, isa_version(module, target)));
}

std::string emit_ptx(llvm::Module& module, const std::string& target) {
  const WithoutStrengthReduction gate(module);
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
