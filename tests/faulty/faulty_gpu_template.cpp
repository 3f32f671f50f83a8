#include "tests/faulty/faulty_gpu_template.h"

#include "base/kernel/amd.h"
#include "templates/gpu/simt/simt.h"

#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace deepgen {
namespace {

enum Fault { kNone, kForgetsEpilogue, kOneRowMore, kNoBarrier };

const Template& correct() {
  static const Simt simt;
  return simt;
}

/// Takes operands of any alignment. Of two waves: the backend makes no barriers for one.
Config plain() {
  return Config::parse("wide=0 bm=64 bn=32 bk=8 tm=4 tn=4 stages=2 blocks=1 splits=1 group=1");
}

void remove_barriers(mlir::ModuleOp module) {
  std::vector<mlir::Operation*> barriers;
  module.walk([&](mlir::ROCDL::SBarrierOp barrier) { barriers.push_back(barrier); });
  for (mlir::Operation* barrier : barriers) barrier->erase();
}

} // namespace

std::string FaultyGpuTemplate::why_not(const Gemm& p, const std::string& arch) const {
  return is_amd(arch) ? correct().why_not(p, arch) : "faulty_gpu is for GPUs of AMD";
}

std::vector<Parameter> FaultyGpuTemplate::parameters(const Gemm&, const Device&) const {
  return {{"fault", {kNone, kForgetsEpilogue, kOneRowMore, kNoBarrier}, "what goes wrong"}};
}

Gemm FaultyGpuTemplate::awkward(const Gemm& p, const Config&) const {
  return correct().awkward(p, plain()).gemm();
}

Kernel FaultyGpuTemplate::emit(mlir::ModuleOp module, const Gemm& p, const std::string& arch,
                               const Config& config) const {
  const auto fault = Fault(config["fault"]);
  Gemm emitted = p;
  if (fault == kForgetsEpilogue) emitted.epilogue.clear();
  if (fault == kOneRowMore) ++emitted.m;
  Kernel kernel = correct().emit(module, emitted, arch, plain());
  if (fault == kNoBarrier) remove_barriers(module);
  kernel.problem = p, kernel.choice = {name(), config};
  return kernel;
}

} // namespace deepgen
