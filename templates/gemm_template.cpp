#include "templates/gemm_template.h"

#include "mlir/IR/BuiltinOps.h"

namespace deepgen {

Kernel GemmTemplate::emit(mlir::ModuleOp module, const Problem& p, const std::string& arch,
                          const Config& config) const {
  return emit(module, p.gemm(), arch, config);
}

} // namespace deepgen
