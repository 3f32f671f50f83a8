// faulty_gpu: simt on AMD's GPUs, with candidates that are wrong in ways that verifying must find. Tests
// only.
#pragma once

#include "templates/template.h"

namespace deepgen {

/// Parameter `fault`: 0 none (the default, being the cheapest), 1 forgets the epilogue, 2 writes a row too
/// many, 3 lacks barriers.
class FaultyGpuTemplate : public Template {
public:
  std::string name() const override { return "faulty_gpu"; }
  int64_t revision() const override { return 1; }
  std::string why_not(const Problem&, const std::string& arch) const override;
  std::vector<Parameter> parameters(const Problem&, const Device&) const override;
  std::string why_illegal(const Problem&, const Device&, const Config&) const override { return ""; }
  double cost(const Problem&, const Device&, const Config& c) const override {
    return 1e-6 * double(1 + c["fault"]);
  }
  Problem awkward(const Problem&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Problem&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
