// The one place that chooses between the vendors.
#include "base/kernel/device.h"
#include "templates/ir/amd_ir.h"
#include "templates/ir/nv_ir.h"

namespace deepgen {

std::string gpu_target(const std::string& arch) {
  return is_amd(arch) ? arch : "sm_" + std::to_string(compute_capability(arch));
}

std::unique_ptr<GpuIr> make_gpu_ir(mlir::ModuleOp module, const std::string& target) {
  if (is_amd(target)) return std::make_unique<AmdIr>(module, target);
  return std::make_unique<NvIr>(module, target);
}

} // namespace deepgen
