#include "generator/codegen/compile.h"

#include "base/files/files.h"
#include "base/kernel/cpu_isa.h"
#include "base/kernel/device.h"
#include "base/text/error.h"
#include "base/text/sha256.h"
#include "generator/codegen/amdgpu.h"
#include "generator/codegen/codegen.h"
#include "generator/codegen/kept_objects.h"
#include "generator/codegen/nvptx.h"
#include "generator/codegen/ptxas.h"
#include "generator/codegen_hash.inc"
#include "templates/core/template.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>

#include <cstdlib>
#include <new>

namespace deepgen {
namespace {

/// C++ leaves open in which order arguments are evaluated, and with it the order of operations that templates
/// emit: kernels of a tool by clang have other bytes than those of one by g++.
#ifdef __clang__
constexpr const char* kBuiltBy = " by clang";
#else
constexpr const char* kBuiltBy = "";
#endif

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

/// Whether it may run in place of the config where that cannot: on a CPU for all calls of a lesser one.
bool keeps_order(const Problem& p, const std::string& arch, const Choice& config, const Choice& other) {
  if (!p.batch_invariant() || arch == "cpu") return true;
  const auto order = [&](const Choice& c) {
    return find_template(c.template_name).sum_order(p, arch, c.config);
  };
  return order(config) == order(other);
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

/// The code object. $DEEPGEN_KEEP_IR names a folder for the IR that the backend got, under the code's
/// SHA-256: the simulated device of the tests runs that.
void link_code_object(llvm::Module& module, Kernel& kernel) {
  const char* folder = std::getenv("DEEPGEN_KEEP_IR");
  const bool keep = folder && *folder;
  const std::string ir = keep ? printed(module) : "";
  link_amd(emit_amd(module, kernel.target, false), kernel);
  if (keep) write_if_changed(std::string(folder) + "/" + sha256_hex(kernel.code) + ".ll", ir);
}

std::string cpu_object(mlir::ModuleOp emitted, int64_t isa) {
  lower_to_llvm(emitted);
  llvm::LLVMContext context;
  auto module = translate(emitted, context, isa);
  optimize(*module, isa);
  return emit_code(*module, isa, false);
}

std::string ptx_of(mlir::ModuleOp emitted, const Kernel& kernel, const std::string& template_name) {
  lower_to_llvm(emitted);
  llvm::LLVMContext context;
  auto module = translate_gpu(emitted, context, kernel.target);
  for (const Launch& launch : kernel.launches)
    if (!module->getFunction(launch.entry))
      throw Error("template " + template_name + " did not define the entry " + launch.entry);
  optimize_gpu(*module, kernel.target);
  return emit_ptx(*module, kernel.target);
}

void compile_amd(mlir::ModuleOp emitted, Kernel& kernel) {
  lower_to_llvm(emitted);
  llvm::LLVMContext context;
  auto module = translate_amd(emitted, context, kernel.target);
  optimize_amd(*module, kernel.target);
  link_code_object(*module, kernel);
}

/// For an NVIDIA GPU up to the PTX: the assembler runs beside the next kernel's compilation.
Kernel compile_one(const Problem& problem, const std::string& arch, const Choice& choice,
                   const std::string& role) {
  Emitted emitted(problem, arch, choice);
  Kernel kernel = std::move(emitted.kernel);
  mlir::ModuleOp module = *emitted.module;
  if (is_amd(arch))
    compile_amd(module, kernel);
  else if (is_gpu(arch))
    kernel.ptx =
        kept_code(module, kernel.target, [&] { return ptx_of(module, kernel, choice.template_name); });
  else // the target's words decide, as base/ makes them of the level
    link_image(kept_code(module, std::to_string(kernel.isa) + isa_features(kernel.isa),
                         [&] { return cpu_object(module, kernel.isa); }),
               kernel);
  kernel.role = role;
  kernel.choice = choice;
  if (problem.batch_invariant())
    kernel.sum_order = find_template(choice.template_name).sum_order(problem, arch, choice.config);
  return kernel;
}

/// Collects the kernels of one candidate.
class Kernels {
public:
  Kernels(KernelFile& file, bool reject) : file_(file), reject_(reject) {}

  void add(const Problem& problem, const Choice& choice, const std::string& role) {
    file_.kernels.push_back(compile_one(problem, file_.arch, choice, role));
    // -O3 takes ptxas about twice as long as -O2 where there are mma.sync; the awkward kernel is only
    // verified.
    if (takes_ptx()) assemblies_.emplace_back(file_.kernels.back(), role == "awkward" ? 2 : 3);
  }

  void finish() {
    for (size_t i = 0; i < file_.kernels.size(); ++i) {
      Kernel& kernel = file_.kernels[i];
      if (takes_ptx()) assemblies_[i].finish(kernel, kAssemblerSeconds);
      kernel.sha256 = sha256_hex(kernel.code.empty() ? kernel.ptx : kernel.code);
      // The awkward kernel is never timed, and a fallback has no alternative: both may be slow.
      if (std::string why = takes_ptx() ? why_rejected(kernel) : why_rejected_amd(kernel);
          reject_ && kernel.role == "main" && !why.empty())
        throw Error(std::string(kRejected) + ": " + why);
    }
  }

private:
  bool takes_ptx() const { return compute_capability(file_.arch) != 0; }

  static constexpr double kAssemblerSeconds = 30;
  KernelFile& file_;
  const bool reject_;
  std::vector<Assembly> assemblies_;
};

std::string assembler() {
  const std::string version = ptxas_version();
  return version.empty() ? "without ptxas" : version;
}

/// Beside the code generator, what decides the bytes of an arch's kernels.
std::string assembler_of(const std::string& arch) {
  if (!is_amd(arch)) return is_gpu(arch) ? " " + assembler() : "";
  const std::string version = lld_version();
  return (version.empty() ? " without lld" : " " + version) + " " + amd_code_object_text();
}

KernelFile compile_kernels(const Problem& problem, const std::string& arch, const Choice& choice, bool reject,
                           const std::function<void(Kernels&, const Template&)>& add) {
  KernelFile file;
  file.problem = problem, file.arch = arch, file.choice = choice;
  try {
    const Template& family = find_template(choice.template_name);
    file.revision = family.revision_for(problem, choice.config);
    if (std::string why = family.why_not(problem, arch); !why.empty()) throw Error(why);
    Kernels kernels(file, reject);
    add(kernels, family);
    kernels.finish();
  } catch (const HostFault&) { // says nothing about the candidate
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    file.status = "failed", file.detail = e.what();
    file.kernels.clear();
  }
  return file;
}

} // namespace

KernelFile compile_candidate(const Problem& problem, const std::string& arch, const Choice& choice,
                             bool awkward, bool fallbacks, bool reject) {
  return compile_kernels(problem, arch, choice, reject, [&](Kernels& kernels, const Template& family) {
    kernels.add(problem, choice, "main");
    if (awkward) kernels.add(family.awkward(problem, choice.config), choice, "awkward");
    if (fallbacks)
      for (const Choice& other : family.fallbacks(problem, arch, choice.config))
        if (keeps_order(problem, arch, choice, other)) kernels.add(problem, other, "fallback");
  });
}

KernelFile compile_awkward(const Problem& problem, const std::string& arch, const Choice& choice) {
  return compile_kernels(problem, arch, choice, true, [&](Kernels& kernels, const Template& family) {
    kernels.add(family.awkward(problem, choice.config), choice, "awkward");
  });
}

std::string codegen_id() {
  return std::string("llvm ") + DEEPGEN_LLVM_VERSION + " " + assembler() + " sources " + kCodegenHash +
         kBuiltBy;
}
std::string compiler_id(const std::string& arch) {
  return toolchain(arch) + " sources " + kCodegenHash + kBuiltBy;
}
std::string toolchain(const std::string& arch) {
  return std::string("deepgen ") + DEEPGEN_VERSION + " llvm " + DEEPGEN_LLVM_VERSION + assembler_of(arch);
}

std::string dump_stage(const Problem& problem, const std::string& arch, const Choice& choice,
                       const std::string& stage) {
  const bool amd = is_amd(arch), ptx = is_gpu(arch) && !amd;
  const std::string last = ptx ? "ptx" : "asm";
  if (stage != "mlir" && stage != "lowered" && stage != "llvm" && stage != "optimized" && stage != last)
    throw Error("unknown stage '" + stage + "'", "--stage", "arch " + arch,
                "use one of: mlir, lowered, llvm, optimized, " + last);
  Emitted emitted(problem, arch, choice);
  if (stage == "mlir") return printed(*emitted.module);
  lower_to_llvm(*emitted.module);
  if (stage == "lowered") return printed(*emitted.module);
  llvm::LLVMContext context;
  const Kernel& kernel = emitted.kernel;
  auto module = amd   ? translate_amd(*emitted.module, context, kernel.target)
                : ptx ? translate_gpu(*emitted.module, context, kernel.target)
                      : translate(*emitted.module, context, kernel.isa);
  if (stage == "llvm") return printed(*module);
  if (amd)
    optimize_amd(*module, kernel.target);
  else if (ptx)
    optimize_gpu(*module, kernel.target);
  else
    optimize(*module, kernel.isa);
  if (stage == "optimized") return printed(*module);
  return amd   ? emit_amd(*module, kernel.target, true)
         : ptx ? emit_ptx(*module, kernel.target)
               : emit_code(*module, kernel.isa, true);
}

} // namespace deepgen
