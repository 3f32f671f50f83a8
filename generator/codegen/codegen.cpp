#include "generator/codegen/codegen.h"

#include "base/kernel/cpu_isa.h"
#include "base/text/error.h"

// One header a pass: mlir/Conversion/Passes.h has all conversions, and is two thirds of what there is to
// parse.
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/ROCDL/ROCDLToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace deepgen {
namespace {

const char* cpu_name(int64_t level) {
  return level >= 4 ? "x86-64-v4" : level == 3 ? "x86-64-v3" : level == 2 ? "x86-64-v2" : "x86-64";
}

/// One target machine a level and process: building one costs milliseconds. Extensions are functions'
/// attributes.
llvm::TargetMachine& target_machine(int64_t isa) {
  const int64_t level = level_of(isa);
  static std::unique_ptr<llvm::TargetMachine> machines[5];
  std::unique_ptr<llvm::TargetMachine>& machine = machines[std::clamp<int64_t>(level, 1, 4)];
  if (!machine) {
    initialize_llvm();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    llvm::Triple triple("x86_64-unknown-linux-gnu");
    std::string why;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, why);
    if (!target) throw Error("LLVM has no x86-64 target", "", why);
    machine.reset(target->createTargetMachine(triple, cpu_name(level), "", llvm::TargetOptions(),
                                              llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                              llvm::CodeGenOptLevel::Aggressive));
  }
  return *machine;
}

} // namespace

void initialize_llvm() {
  static const bool done = [] {
    // The pre-RA scheduler hoists the next steps' loads of B and then spills accumulators. The emitted order
    // is the wanted one (measured: 26 to 28 stack accesses an iteration, or none, for tiles of 4x6, 5x5 and
    // 9x3 vectors).
    const char* options[] = {"deepgen", "-enable-misched=false"};
    return llvm::cl::ParseCommandLineOptions(2, options);
  }();
  (void)done;
}

std::unique_ptr<mlir::MLIRContext> make_context() {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  // These register their dialects, too, whose headers take half a minute to compile.
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
  mlir::registerROCDLDialectTranslation(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

void lower_to_llvm(mlir::ModuleOp module) {
  Diagnostics diagnostics(module.getContext());
  if (mlir::failed(mlir::verify(module)))
    throw Error("the template emitted invalid MLIR", "", diagnostics.text());
  mlir::PassManager passes(module.getContext());
  passes.enableVerifier(false);
  passes.addPass(mlir::createCSEPass());
  passes.addPass(mlir::createSCFToControlFlowPass());
  passes.addPass(mlir::createConvertVectorToLLVMPass());
  passes.addPass(mlir::createConvertMathToLLVMPass());
  passes.addPass(mlir::createArithToLLVMConversionPass());
  passes.addPass(mlir::createConvertNVVMToLLVMPass());
  passes.addPass(mlir::createConvertControlFlowToLLVMPass());
  passes.addPass(mlir::createConvertFuncToLLVMPass());
  passes.addPass(mlir::createReconcileUnrealizedCastsPass());
  if (mlir::failed(passes.run(module))) throw Error("lowering to LLVM failed", "", diagnostics.text());
}

std::unique_ptr<llvm::Module> translate(mlir::ModuleOp module, llvm::LLVMContext& context, int64_t isa) {
  const int64_t level = level_of(isa);
  const std::string features = isa_features(isa);
  Diagnostics diagnostics(module.getContext());
  std::unique_ptr<llvm::Module> out = mlir::translateModuleToLLVMIR(module, context, "deepgen");
  if (!out) throw Error("translation to LLVM IR failed", "", diagnostics.text());
  llvm::TargetMachine& machine = target_machine(level);
  out->setTargetTriple(machine.getTargetTriple());
  out->setDataLayout(machine.createDataLayout());
  for (llvm::Function& f : *out) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", cpu_name(level));
    if (!features.empty()) f.addFnAttr("target-features", features);
    // The generic v4 CPU prefers 256 bits; tiles are written for the full width.
    f.addFnAttr("prefer-vector-width", level >= 4 ? "512" : "256");
    f.addFnAttr("min-legal-vector-width", level >= 4 ? "512" : "256");
  }
  return out;
}

void optimize(llvm::Module& module, int64_t isa) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target_machine(isa));
  builder.registerModuleAnalyses(modules);
  builder.registerFunctionAnalyses(functions);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  // Loops are already blocked, unrolled and vectorized: what is left is cleaning up, not the -O2 pipeline.
  llvm::FunctionPassManager passes;
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

std::string emit_code(llvm::Module& module, int64_t isa, bool assembly) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto kind = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  if (target_machine(isa).addPassesToEmitFile(passes, stream, nullptr, kind, true))
    throw Error("LLVM cannot emit code for this target");
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

} // namespace deepgen
