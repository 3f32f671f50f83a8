#include "generator/compile.h"

#include "base/error.h"
#include "generator/codegen.h"
#include "generator/codegen_hash.inc"
#include "templates/template.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

namespace deepgen {
namespace {

std::string sha256_hex(const std::string& bytes) {
  llvm::SHA256 hash;
  hash.update(llvm::StringRef(bytes));
  return llvm::toHex(hash.final(), true);
}

/// A module with the template's kernel in it, and its description.
struct Emitted {
  std::unique_ptr<mlir::MLIRContext> context = make_context();
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Kernel kernel;

  Emitted(const Problem& problem, const std::string& arch, const Choice& choice)
      : module(mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()))) {
    kernel = find_template(choice.template_name).emit(*module, problem, arch, choice.config);
  }
};

Kernel compile_one(const Problem& problem, const std::string& arch, const Choice& choice, const std::string& role) {
  Emitted emitted(problem, arch, choice);
  lower_to_llvm(*emitted.module);
  llvm::LLVMContext context;
  auto module = translate(*emitted.module, context, emitted.kernel.isa);
  optimize(*module, emitted.kernel.isa);
  Kernel kernel = std::move(emitted.kernel);
  link_image(emit_code(*module, kernel.isa, false), kernel);
  kernel.role = role;
  kernel.choice = choice;
  kernel.sha256 = sha256_hex(kernel.code);
  return kernel;
}

std::string printed(mlir::ModuleOp value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream);
  return text;
}

std::string printed(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

} // namespace

KernelFile compile_candidate(const Problem& problem, const std::string& arch, const Choice& choice,
                             bool awkward, bool fallbacks) {
  KernelFile file;
  file.problem = problem, file.arch = arch, file.choice = choice;
  try {
    const Template& family = find_template(choice.template_name);
    file.revision = family.revision();
    if (std::string why = family.why_not(problem, arch); !why.empty()) throw Error(why);
    file.kernels.push_back(compile_one(problem, arch, choice, "main"));
    if (awkward)
      file.kernels.push_back(compile_one(family.awkward(problem, choice.config), arch, choice, "awkward"));
    if (fallbacks)
      for (const Config& config : family.fallbacks(problem, arch, choice.config))
        file.kernels.push_back(compile_one(problem, arch, {choice.template_name, config}, "fallback"));
  } catch (const std::exception& e) {
    file.status = "failed", file.detail = e.what();
    file.kernels.clear();
  }
  return file;
}

std::string codegen_id() { return std::string("llvm ") + DEEPGEN_LLVM_VERSION + " sources " + kCodegenHash; }
std::string toolchain() {
  return std::string("deepgen ") + DEEPGEN_VERSION + " llvm " + DEEPGEN_LLVM_VERSION;
}

std::string dump_stage(const Problem& problem, const Choice& choice, const std::string& stage) {
  if (stage != "mlir" && stage != "lowered" && stage != "llvm" && stage != "optimized" && stage != "asm")
    throw Error("unknown stage '" + stage + "'", "--stage", "",
                "use one of: mlir, lowered, llvm, optimized, asm");
  Emitted emitted(problem, "cpu", choice);
  if (stage == "mlir") return printed(*emitted.module);
  lower_to_llvm(*emitted.module);
  if (stage == "lowered") return printed(*emitted.module);
  llvm::LLVMContext context;
  auto module = translate(*emitted.module, context, emitted.kernel.isa);
  if (stage == "llvm") return printed(*module);
  optimize(*module, emitted.kernel.isa);
  return stage == "optimized" ? printed(*module) : emit_code(*module, emitted.kernel.isa, true);
}

} // namespace deepgen
