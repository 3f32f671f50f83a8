#include "templates/core/operator_template.h"

#include "mlir/IR/BuiltinOps.h"

namespace deepgen {

template <typename Operator>
Kernel OperatorTemplate<Operator>::emit(mlir::ModuleOp module, const Problem& p, const std::string& arch,
                                        const Config& config) const {
  return emit(module, p.as<Operator>(), arch, config);
}

template class OperatorTemplate<Gemm>;
template class OperatorTemplate<Rows>;

} // namespace deepgen
