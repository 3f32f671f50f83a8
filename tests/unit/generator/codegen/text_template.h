// TextTemplate: a GPU template whose kernels are MLIR text, for tests of the code generation.
#pragma once

#include "templates/core/template.h"

namespace deepgen {

class TextTemplate : public Template {
public:
  std::string text; ///< the body of a module
  std::string target = "sm_80";
  std::vector<std::string> entries{kernel_symbol};

  std::string name() const override { return "text"; }
  std::string op() const override { return "gemm"; }
  int64_t revision() const override { return 1; }
  std::string why_not(const Problem&, const std::string&) const override { return ""; }
  std::vector<Parameter> parameters(const Problem&, const Device&) const override {
    return {{"x", {1, 2}, "nothing"}};
  }
  std::string why_illegal(const Problem&, const Device&, const Config&) const override { return ""; }
  double cost(const Problem&, const Device&, const Config&) const override { return 1; }
  Problem awkward(const Problem& problem, const Config&) const override { return problem; }
  Kernel emit(mlir::ModuleOp, const Problem&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
