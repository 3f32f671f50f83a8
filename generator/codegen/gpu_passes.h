// What LLVM does to kernels before a GPU's backend, the same for all vendors.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace deepgen {

void run_gpu_passes(llvm::Module&, llvm::TargetMachine&);

} // namespace deepgen
