// Compiling a candidate: template -> MLIR -> LLVM IR -> x86-64 object -> position-independent image, or ->
// PTX -> cubin, or -> AMD object -> code object.
#pragma once

#include "base/kernel/kernel.h"

namespace deepgen {

/// How the detail of a candidate begins whose code was made but is not worth running (why_rejected() in
/// ptxas.h and why_rejected_amd() in amdgpu.h).
inline constexpr const char* kRejected = "the assembled kernel is rejected";

/// Compiles one candidate. Never throws for a bad candidate: the file's status is then "failed", with the
/// reason. `awkward` adds the same config for the template's awkward shape, for verification; `fallbacks`
/// adds kernels for lesser devices of the arch, for linking. `reject`: code that is not worth running is a
/// failure.
KernelFile compile_candidate(const Problem&, const std::string& arch, const Choice&, bool awkward,
                             bool fallbacks, bool reject = true);
/// The awkward kernel alone.
KernelFile compile_awkward(const Problem&, const std::string& arch, const Choice&);

/// Names everything that the code of a kernel depends on beside its problem and config: the sources of
/// templates and code generation (a hash), LLVM's and ptxas's versions, and clang where it built this tool.
/// Kernels of all archs are recompiled when it changes.
std::string codegen_id();
/// The part of it that kernels of the arch depend on, with this tool's version.
std::string compiler_id(const std::string& arch);
std::string
toolchain(const std::string& arch = "cpu"); ///< "deepgen 0.1.0 llvm 22.1.8", on NVIDIA GPUs "...
                                            ///< ptxas 13.0.88", on AMD's "... LLD 22.1.8 code object 4"

/// The candidate after one stage: "mlir" as the template emits it, "lowered" in the llvm dialect, "llvm" as
/// LLVM IR, "optimized" LLVM IR, "asm" assembly of a CPU or AMD GPU, "ptx" of an NVIDIA GPU. Throws Error on
/// another stage.
std::string dump_stage(const Problem&, const std::string& arch, const Choice&, const std::string& stage);

} // namespace deepgen
