// faulty: a template whose candidates misbehave in every way that a build must survive. Tests only.
#pragma once

#include "templates/core/operator_template.h"

namespace deepgen {

/// Parameter `fault`: 0 none (the default, being the cheapest), 1 crashes, 2 hangs, 3 writes out of bounds, 4
/// gives wrong numbers, 5 fails to compile, 6 is correct but slow.
class FaultyTemplate : public GemmTemplate {
public:
  std::string name() const override { return "faulty"; }
  int64_t revision() const override { return 1; }
  std::string why_not(const Gemm&, const std::string& arch) const override;
  std::vector<Parameter> parameters(const Gemm&, const Device&) const override;
  std::string why_illegal(const Gemm&, const Device&, const Config&) const override { return ""; }
  double cost(const Gemm&, const Device&, const Config& c) const override {
    return 1e-6 * double(1 + c["fault"]);
  }
  Gemm awkward(const Gemm&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Gemm&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
