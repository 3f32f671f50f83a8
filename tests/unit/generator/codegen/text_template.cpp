#include "tests/unit/generator/codegen/text_template.h"

#include "base/text/error.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace deepgen {

Kernel TextTemplate::emit(mlir::ModuleOp module, const Problem& problem, const std::string&,
                          const Config&) const {
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, module.getContext());
  if (!parsed) throw Error("the test's MLIR cannot be parsed");
  module.getBody()->getOperations().splice(module.getBody()->end(), parsed->getBody()->getOperations());
  Kernel kernel;
  kernel.problem = problem;
  kernel.target = target;
  kernel.args = {"a", "d"};
  for (const std::string& entry : entries) {
    kernel.launches.emplace_back().entry = entry;
    kernel.launches.back().block = {32, 1, 1};
  }
  return kernel;
}

} // namespace deepgen
