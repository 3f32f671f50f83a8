// faulty_gpu: simt on AMD's GPUs, with candidates that are wrong in ways that verifying must find. Tests
// only.
#pragma once

#include "templates/core/operator_template.h"

namespace deepgen {

/// Parameter `fault`: 0 none (the default, being the cheapest), 1 forgets the epilogue, 2 writes a row too
/// many, 3 lacks barriers.
class FaultyGpuTemplate : public GemmTemplate {
public:
  std::string name() const override { return "faulty_gpu"; }
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
