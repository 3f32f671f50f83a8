#include "templates/rows_template.h"

#include "mlir/IR/BuiltinOps.h"

namespace deepgen {

Kernel RowsTemplate::emit(mlir::ModuleOp module, const Problem& p, const std::string& arch,
                          const Config& config) const {
  return emit(module, p.rows(), arch, config);
}

} // namespace deepgen
